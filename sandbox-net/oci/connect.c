/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/connect.h"

#include <stdlib.h>

#include "base/err.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/oci/choice.h"

int connect_container(struct attach_options *o, const struct choice *choice, const char *permits, struct err *err)
{
	struct choice_options *chosen;
	int rc;

	if (choice->job[0]) {
		o->job = choice->job;
		o->n_gate = 0;
		return choice_may_join(choice, permits, err) ? -1 : attach_sandbox(o, err);
	}
	chosen = calloc(1, sizeof(*chosen));
	if (!chosen)
		return err_set(err, "out of memory");
	rc = choice_options(choice, permits, chosen, err);
	for (size_t i = 0; i < chosen->n && rc == 0; i++)
		rc = attach_pass_on(o, chosen->v[i], err);
	if (rc == 0)
		rc = attach_sandbox(o, err);
	free(chosen);
	return rc;
}

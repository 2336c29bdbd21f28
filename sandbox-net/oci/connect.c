/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/connect.h"

#include <stdlib.h>

#include "base/err.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/attach/start.h"
#include "sandbox-net/oci/choice.h"

/* With what was chosen among the gate's options, whatever `with` does. */
static int choose(struct attach_options *o, const struct choice *choice, const char *permits,
		  int (*with)(const struct attach_options *o, struct err *err), struct err *err)
{
	struct choice_options *chosen = calloc(1, sizeof(*chosen));
	int rc;

	if (!chosen)
		return err_set(err, "out of memory");
	rc = choice_options(choice, permits, chosen, err);
	for (size_t i = 0; i < chosen->n && rc == 0; i++)
		rc = attach_pass_on(o, chosen->v[i], err);
	if (rc == 0)
		rc = with(o, err);
	free(chosen);
	return rc;
}

int connect_container(struct attach_options *o, struct choice *choice, const char *permits, struct err *err)
{
	if (o->choose && choice_fix(choice, o->choose, err))
		return -1;
	if (choice->job[0]) {
		o->job = choice->job;
		o->n_gate = 0;
		return choice_may_join(choice, permits, err) ? -1 : attach_sandbox(o, err);
	}
	return choose(o, choice, permits, attach_sandbox, err);
}

void connect_end(const char *name, const struct choice *choice)
{
	jobs_detach_ended(choice->job[0] ? choice->job : name, name);
}

static int start_and_end(const struct attach_options *o, struct err *err)
{
	return start_gate(o->job, o->gate, o->n_gate, err) || jobs_detach(o->job, "", err) ? -1 : 0;
}

int connect_rehearse(struct attach_options *o, const char *permits, struct err *err)
{
	struct choice nothing = { .job = "" };

	if (!permits)
		return start_and_end(o, err);
	if (o->choose && choice_fix(&nothing, o->choose, err))
		return -1;
	return choose(o, &nothing, permits, start_and_end, err);
}

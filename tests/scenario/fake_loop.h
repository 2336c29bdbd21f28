/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent's loop and the clocks, replaced: time is virtual and moves only when
 * it is told to, and events are called in the order in which they were added.
 *
 * A turn is one of libevent: descriptors that are ready (fake_net.h says which), then timers that are due. An
 * event that a callback takes back is not called any more; one that a callback adds waits for the next turn.
 */
#ifndef TESTS_SCENARIO_FAKE_LOOP_H
#define TESTS_SCENARIO_FAKE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOP_FOREVER UINT64_MAX

/* Forgets every event and sets the clock back to where it begins. */
void loop_reset(void);

/* Any base will do, there is one loop. */
struct event_base *loop_base(void);

/* The virtual clock, as clock_mono_us() has it. */
uint64_t loop_now(void);

/*
 * With `on`, each question for the time takes a microsecond, while the loop's own
 * clock and clock_tick_us() stand still for a turn: as in life, a timer that is set late in a turn fires a little early.
 */
void loop_tick(bool on);

/* One turn. False when there was nothing to do. */
bool loop_turn(void);

/* Runs until nothing is ready and no timer is due. Fails when turns go by in which nothing happens: a busy loop. */
void loop_settle(void);

/* Lets `us` pass, from timer to timer, and settles. */
void loop_advance(uint64_t us);

/* Something happened: bytes moved, a descriptor came or went, an end was seen. */
void loop_progress(void);

/* True while an event waits for this descriptor. */
bool loop_watches(int fd);

/* Events that are pending, and those of event_new() that were not freed. */
size_t loop_pending(void);
size_t loop_allocated(void);

#endif

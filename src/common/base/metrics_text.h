/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_text.h - metrics in the text format of Prometheus, for node_exporter's textfile collector. It is built in memory and
 * written at once.
 *
 *      metrics_family(&text, "flexgraft_pool_size_bytes", "gauge", "Size that a pool may use, in bytes.");
 *      metrics_sample(&text, "flexgraft_pool_size_bytes");
 *      metrics_label(&text, "pool", name);
 *      metrics_value(&text, 4096);
 *
 * All samples of a family follow its first line.
 */
#ifndef FLEXGRAFT_BASE_METRICS_TEXT_H
#define FLEXGRAFT_BASE_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No program prints more volumes or mounts than so many: it prints how many it has left out. */
#define METRICS_THINGS_MAX 1000

struct metrics_text {
        char *bytes; /* owned */
        size_t length;
        size_t room;
        bool failed;  /* there was no memory for all of it */
        bool labeled; /* the sample that is being added has a label */
};

void metrics_family(struct metrics_text *text, const char *name, const char *type, const char *help);

/* metrics_sample() - begin a sample; metrics_label() - add a label to it, of any bytes; metrics_value() - end it. */
void metrics_sample(struct metrics_text *text, const char *name);
void metrics_label(struct metrics_text *text, const char *key, const char *value);
void metrics_value(struct metrics_text *text, uint64_t value);
void metrics_value_seconds(struct metrics_text *text, uint64_t microseconds);

/* metrics_gauge() - a family of one sample, without labels. */
void metrics_gauge(struct metrics_text *text, const char *name, const char *help, uint64_t value);

/* metrics_say() - print all of it, and release it. Returns the program's exit status: nothing is printed in part. */
int metrics_say(struct metrics_text *text);

#endif

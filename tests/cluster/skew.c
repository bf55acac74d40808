/* A wrong clock for the programs of a host: those that load this are as many seconds ahead as the
 * file that SKEW_FILE names says. Hosts have files of their own, and namespaces no clocks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long ahead(void) {
    static long seconds;
    static int known;
    if (!known) {
        const char *name = getenv("SKEW_FILE");
        FILE *file = name ? fopen(name, "r") : NULL;
        if (file && fscanf(file, "%ld", &seconds) != 1)
            seconds = 0;
        if (file)
            fclose(file);
        known = 1;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*really)(clockid_t, struct timespec *);
    if (!really)
        really = dlsym(RTLD_NEXT, "clock_gettime");
    int result = really(clock, now);
    if (!result && clock == CLOCK_REALTIME)
        now->tv_sec += ahead();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    static int (*really)(struct timeval *, void *);
    if (!really)
        really = dlsym(RTLD_NEXT, "gettimeofday");
    int result = really(now, zone);
    if (!result)
        now->tv_sec += ahead();
    return result;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

/* A CUDA driver that can only park the process that has loaded it.
 *
 * The file that FAKE_CUDA_SCRIPT names says what goes wrong, in lines: RANK CALL ACTION [N]. RANK is a
 * number or *, CALL is lock, checkpoint, restore or unlock, and ACTION is one of
 *   fail N   return error N
 *   lose N   return error N, and lose the state of the process
 *   hang     wait until the line is gone
 * Each call appends a line to the file that FAKE_CUDA_LOG names: RANK CALL RESULT STATE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };
enum { INVALID_VALUE = 1, ILLEGAL_STATE = 401 };

static int state = RUNNING;

static const char *rank_of_process(void) {
    const char *rank = getenv("RANK");
    return rank ? rank : "-";
}

/* Find what is scripted for a call; return 0 for nothing. */
static int scripted(const char *call, char action[16], int *number) {
    const char *path = getenv("FAKE_CUDA_SCRIPT");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[128], rank[16], named[16];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        *number = 0;
        if (sscanf(line, "%15s %15s %15s %d", rank, named, action, number) >= 3)
            found = !strcmp(named, call) && (!strcmp(rank, "*") || !strcmp(rank, rank_of_process()));
    }
    if (file)
        fclose(file);
    return found;
}

/* Not static: an old driver does not use it. */
int take(const char *call, int pid, int from, int to) {
    char action[16];
    int number, result = 0;
    while (scripted(call, action, &number) && !strcmp(action, "hang"))
        usleep(20000);
    if (pid != getpid())
        result = INVALID_VALUE;
    else if (state != from)
        result = ILLEGAL_STATE;
    else if (scripted(call, action, &number)) {
        result = number;
        if (!strcmp(action, "lose"))
            state = FAILED;
    } else
        state = to;
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s %s %d %d\n", rank_of_process(), call, result, state);
        fclose(file);
    }
    return result;
}

int cuGetErrorName(int error, const char **name) {
    *name = error == ILLEGAL_STATE ? "CUDA_ERROR_ILLEGAL_STATE"
            : error == 2           ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == 600         ? "CUDA_ERROR_NOT_READY"
            : error == 801         ? "CUDA_ERROR_NOT_SUPPORTED"
                                   : NULL;
    return *name ? 0 : INVALID_VALUE;
}

#ifndef OLD
int cuCheckpointProcessGetState(int pid, int *now) {
    *now = state;
    return pid == getpid() ? 0 : INVALID_VALUE;
}

int cuCheckpointProcessLock(int pid, void *arguments) {
    (void)arguments;
    return take("lock", pid, RUNNING, LOCKED);
}

int cuCheckpointProcessCheckpoint(int pid, void *arguments) {
    (void)arguments;
    return take("checkpoint", pid, LOCKED, CHECKPOINTED);
}

int cuCheckpointProcessRestore(int pid, void *arguments) {
    (void)arguments;
    return take("restore", pid, CHECKPOINTED, LOCKED);
}

int cuCheckpointProcessUnlock(int pid, void *arguments) {
    (void)arguments;
    return take("unlock", pid, LOCKED, RUNNING);
}
#endif

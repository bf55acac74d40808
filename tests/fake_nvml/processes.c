/* Which processes use a GPU. */
#include "fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROCESSES = 64 };

typedef unsigned long long Wide;

static const Wide NOT_TOLD = ~0ull; /* NVML_VALUE_NOT_AVAILABLE */

typedef struct {
    unsigned int pid;
    Wide memory;
    unsigned int gpu_instance, compute_instance;
} Process;

typedef struct {
    unsigned int pid;
    Wide timestamp; /* microseconds */
    unsigned int sm, memory, encoder, decoder;
} Utilization;

typedef struct {
    Process process;
    char sm[64]; /* as in the state; empty if it is not told */
} Row;

/* Add the lines of one GPU or MIG instance to `rows`, which has `count` already. */
static int add_rows(const Instance *device, const char *key, Row *rows, int count) {
    char words[128];
    for (int nth = 0; count < MAX_PROCESSES && find(device, ANY, key, nth, words, sizeof words);
         nth++) {
        Row *row = &rows[count];
        char memory[32] = "";
        *row = (Row){.process = {.gpu_instance = ~0u, .compute_instance = ~0u}};
        if (sscanf(words, "%u,%31[^,],%63s", &row->process.pid, memory, row->sm) < 2)
            continue;
        row->process.memory = *memory == '?' ? NOT_TOLD : strtoull(memory, NULL, 10);
        if (device->mig >= 0) {
            row->process.gpu_instance = (unsigned int)(device->mig + FIRST_GPU_INSTANCE);
            row->process.compute_instance = 0;
        }
        count++;
    }
    return count;
}

/* Collect the processes of a device: of all its MIG instances if it is divided. */
static int rows_of(const Instance *device, const char *key, Row *rows) {
    char profile[32];
    int count = 0;
    if (device->mig >= 0 || mig_count(device->gpu) == 0)
        return add_rows(device, key, rows, 0);
    for (int mig = 0; mig < MAX_MIGS; mig++)
        if (mig_profile(device->gpu, mig, profile, sizeof profile)) {
            const Instance instance = {.gpu = device->gpu, .mig = mig};
            count = add_rows(&instance, key, rows, count);
        }
    return count;
}

static Return running(const char *symbol, Device device, const char *key, unsigned int *room,
                      Process *processes) {
    Row rows[MAX_PROCESSES];
    char words[128];
    double unused;
    Return code = enter(symbol, device);
    if (code == OK)
        hang_if_told(device, key);
    if (code == OK && find(device, ANY, key, 0, words, sizeof words) && *words == '!')
        code = evaluate(words, &unused);
    if (code != OK)
        return code;
    unsigned int count = (unsigned int)rows_of(device, key, rows);
    if (count > *room)
        code = INSUFFICIENT_SIZE;
    else
        for (unsigned int i = 0; i < count; i++)
            processes[i] = rows[i].process;
    *room = count;
    return code;
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int *room,
                                               Process *processes) {
    return running("nvmlDeviceGetComputeRunningProcesses_v3", device, "process", room, processes);
}

Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned int *room,
                                               Process *processes) {
    return running("nvmlDeviceGetComputeRunningProcesses_v2", device, "process", room, processes);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned int *room,
                                                Process *processes) {
    return running("nvmlDeviceGetGraphicsRunningProcesses_v3", device, "graphics", room, processes);
}

Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned int *room,
                                                  Process *processes) {
    return running("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, "mps", room, processes);
}

/* Add what drivers return by mistake: rows that nothing filled in, and rows of long ago. */
static unsigned int add_junk(Utilization *samples, unsigned int count, unsigned int pid) {
    const Wide moment = (Wide)(now() * 1e6), hours = 3ull * 3600 * 1000000;
    samples[count++] = (Utilization){.pid = 0, .timestamp = moment, .sm = 77};
    samples[count++] = (Utilization){.pid = pid, .timestamp = moment, .sm = 4294967000u};
    samples[count++] = (Utilization){.pid = pid, .timestamp = moment - hours, .sm = 99};
    samples[count++] = (Utilization){.pid = 4000000007u, .timestamp = 0, .sm = 101};
    return count;
}

Return nvmlDeviceGetProcessUtilization(Device device, Utilization *samples, unsigned int *room,
                                       Wide since) {
    Row rows[MAX_PROCESSES];
    Utilization found[MAX_PROCESSES + 4];
    unsigned int count = 0;
    double junk = 0, unused;
    Return code = enter("nvmlDeviceGetProcessUtilization", device);
    if (code == OK && mig_count(device->gpu) > 0)
        code = NOT_SUPPORTED;
    if (code == OK)
        code = number(device, ANY, "process_utilization", "0", &unused);
    if (code != OK)
        return code;
    int processes = rows_of(device, "process", rows);
    number(device, ANY, "junk", "0", &junk);
    if (junk != 0) /* of a process that has good rows too, where there is one */
        count = add_junk(found, count, processes ? rows[0].process.pid : 1);
    for (int i = 0; i < processes; i++) {
        double sm = 0;
        Wide moment = (Wide)(now() * 1e6);
        if (*rows[i].sm && evaluate(rows[i].sm, &sm) == OK && sm > 0 && moment > since)
            found[count++] = (Utilization){
                .pid = rows[i].process.pid, .timestamp = moment, .sm = (unsigned int)sm};
    }
    if (count == 0)
        code = NOT_FOUND; /* no process did anything */
    else if (count > *room)
        code = INSUFFICIENT_SIZE;
    else
        memcpy(samples, found, count * sizeof *found);
    *room = count;
    return code;
}

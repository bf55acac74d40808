/* A stand-in for NVIDIA's libnvidia-ml.so.1, with the symbols that our code asks pynvml for.
 *
 * What it tells comes from the file that FAKE_NVML_STATE names, one line a fact, read again
 * whenever it is replaced (written elsewhere and renamed: see State in build.py):
 *
 *     key=value        for all GPUs
 *     N.key=value      for GPU N only; N:M.key=value for MIG instance M of GPU N only
 *
 * A value is a number, or a curve of wall-clock time: sine(PERIOD,MIN,MAX), which is MIN at time 0,
 * or rate(R), a counter that grows by R a second. In place of any value, an error: !unsupported,
 * !permission, !lost, !reset, !timeout, !unknown, !missing (the driver is too old to have the
 * function), or a code such as !10. Keys that nobody knows are ignored.
 *
 * The driver
 *   gpus            how many GPUs (0)
 *   driver, cuda    versions (570.00, 12080)
 *   init_error      the code that nvmlInit returns
 *   slow_init       milliseconds that nvmlInit takes (0)
 *   hang            INIT, COUNT, or a key below: that call doesn't return while this is said.
 *                   May be given several times, and for one GPU
 *   reload          any number; when it changes, all calls fail with "uninitialized" until
 *                   nvmlInit is called again: the driver was loaded anew. Handles from before
 *                   a shutdown are never accepted
 * A GPU (this file)
 *   lost=1          each call on it says that it is lost, getting its handle too
 *   broken          an error: what each call on it returns, getting its handle too
 *   handle          an error: what getting its handle returns
 *   uuid            the start of all UUIDs (GPU-fake), which -INDEX follows; N.uuid is a whole one
 *   name, pci       (Fake GPU; 00000000:INDEX+1:00.0)
 *   compute_mode    0; 2: prohibited, 3: one process at a time
 *   memory          bytes (1 GiB); compute (9.0), sm_count (132), numa (0)
 *   topology        the level of nvmlDeviceGetTopologyCommonAncestor: 10, 20, 30, 40, 50.
 *                   Left out: 40 between GPUs of one NUMA node, 50 otherwise
 *   nvlinks         number of NVLinks (0). They go to a switch, or to the GPUs that
 *                   nvlink_remote lists, one for each link: 1,1,2,-  ("-": a link that is down)
 *   mig             its MIG instances: 1g.10gb,2g.20gb  (an empty place is a gap between them).
 *                   A MIG instance does not support what is not told for it alone (N:M.key),
 *                   but for memory and processes; its parent has no utilization of its own
 * What is sampled (metrics.c)
 *   utilization, memory_utilization, encoder, decoder (0 %), memory_used, memory_reserved (bytes),
 *   temperature (35), power, power_limit (70000, 700000 mW), clock_sm, clock_memory, clock_sm_max
 *   (345, 2619, 1980 MHz), fan (30 %), pstate (0), ecc_corrected, ecc_uncorrected (0),
 *   throttle (bit mask, 1: idle), energy (mJ, rate(300000)), pcie_tx, pcie_rx (0 KB/s; each call
 *   takes slow_pcie=20 ms), nvlink_tx, nvlink_rx (KiB, counters of all links)
 * Processes (processes.c)
 *   process         PID,BYTES[,SM] for each; BYTES may be ? (not told); SM may be a curve.
 *                   An empty one means none; graphics, mps: the same for graphics processes,
 *                   and for the clients of MPS
 *   process_utilization   an error instead of the SM percentages
 *   junk=1          what drivers really return beside good rows: pid 0, absurd percentages, and
 *                   rows that are hours old
 * GPU performance monitoring (gpm.c)
 *   gpm=1, gpm_sm, gpm_tensor, gpm_dram (%); gpm_sample: an error when a sample is taken
 *
 * Each call adds a line to the file that FAKE_NVML_LOG names: the symbol, and for a call on a GPU
 * its place: "nvmlDeviceGetUUID 3", "nvmlDeviceGetMemoryInfo 3:1".
 *
 * See https://docs.nvidia.com/deploy/nvml-api/.
 */
#define _GNU_SOURCE
#include "fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int initialised; /* how often nvmlInit was called more than nvmlShutdown */
static int epoch;
static double loaded; /* the state's `reload` when the library was initialised */
static Instance instances[4][MAX_GPUS][1 + MAX_MIGS]; /* handles of four epochs */

static double plain(const char *key) {
    double value = 0;
    number(NULL, ANY, key, "0", &value);
    return value;
}

Device device_of(int gpu, int mig) {
    Device device = &instances[epoch % 4][gpu][1 + mig];
    *device = (Instance){.gpu = gpu, .mig = mig, .epoch = epoch};
    return device;
}

static Return ready(void) {
    return initialised && plain("reload") == loaded ? OK : UNINITIALIZED;
}

static Return lost(const Instance *device) {
    const Instance whole = {.gpu = device->gpu, .mig = -1};
    double value = 0;
    number(&whole, ANY, "lost", "0", &value);
    if (value != 0 || device->gpu >= plain("gpus"))
        return GPU_IS_LOST;
    return number(&whole, ANY, "broken", "0", &value);
}

Return enter(const char *symbol, Device device) {
    log_call(symbol, device);
    Return code = ready();
    if (code == OK && (!device || device->epoch != epoch))
        code = INVALID_ARGUMENT;
    if (code == OK)
        code = lost(device);
    char unused[32];
    if (code == OK && device->mig >= 0 && !mig_profile(device->gpu, device->mig, unused, sizeof unused))
        code = INVALID_ARGUMENT; /* it has been removed */
    return code;
}

int mig_profile(int gpu, int place, char *profile, size_t size) {
    const Instance whole = {.gpu = gpu, .mig = -1};
    char all[128];
    if (!find(&whole, ANY, "mig", 0, all, sizeof all))
        return 0;
    const char *item = all;
    for (; place > 0 && *item; place--) {
        item += strcspn(item, ",");
        item += *item == ',';
    }
    snprintf(profile, size, "%.*s", place ? 0 : (int)strcspn(item, ","), item);
    return *profile != 0;
}

int mig_count(int gpu) {
    char profile[32];
    int count = 0;
    for (int place = 0; place < MAX_MIGS; place++)
        count += mig_profile(gpu, place, profile, sizeof profile);
    return count;
}

Return nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    log_call("nvmlInitWithFlags", NULL);
    hang_if_told(NULL, "INIT");
    usleep((useconds_t)(plain("slow_init") * 1000));
    Return code = (Return)plain("init_error");
    if (code == OK && initialised++ == 0) {
        epoch++;
        loaded = plain("reload");
    }
    return code;
}

/* As programs that are not pynvml call it. */
Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

Return nvmlShutdown(void) {
    log_call("nvmlShutdown", NULL);
    if (!initialised)
        return UNINITIALIZED;
    initialised--;
    return OK;
}

const char *nvmlErrorString(Return code) {
    return code == TIMEOUT ? "Timeout" : "Unknown Error"; /* pynvml knows the usual ones itself */
}

Return nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    log_call("nvmlSystemGetDriverVersion", NULL);
    Return code = ready();
    return code == OK ? text(NULL, "driver", "570.00", version, size) : code;
}

Return nvmlSystemGetCudaDriverVersion(int *version) {
    double value = 0;
    log_call("nvmlSystemGetCudaDriverVersion", NULL);
    Return code = ready();
    if (code == OK)
        code = number(NULL, ANY, "cuda", "12080", &value);
    *version = (int)value;
    return code;
}

Return nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}

Return nvmlDeviceGetCount_v2(unsigned int *count) {
    log_call("nvmlDeviceGetCount_v2", NULL);
    hang_if_told(NULL, "COUNT");
    *count = (unsigned int)plain("gpus");
    return ready();
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device *device) {
    const Instance asked = {.gpu = (int)index, .mig = -1};
    double unused;
    log_call("nvmlDeviceGetHandleByIndex_v2", &asked);
    Return code = ready();
    if (code == OK && (index >= plain("gpus") || index >= MAX_GPUS))
        code = INVALID_ARGUMENT;
    if (code == OK)
        code = lost(&asked);
    if (code == OK)
        code = number(&asked, ANY, "handle", "0", &unused);
    if (code == OK)
        *device = device_of((int)index, -1);
    return code;
}

static Return uuid_of(const Instance *device, char *uuid, unsigned int size) {
    char own[80], start[64];
    if (find(device, OWN, "uuid", 0, own, sizeof own))
        return text(device, "uuid", own, uuid, size);
    Return code = text(NULL, "uuid", "GPU-fake", start, sizeof start);
    if (code != OK)
        return code;
    if (device->mig < 0)
        snprintf(uuid, size, "%s-%d", start, device->gpu);
    else /* the same with MIG- in place of GPU- */
        snprintf(uuid, size, "MIG-%s-%d-%d", start + 4, device->gpu, device->mig);
    return OK;
}

Return nvmlDeviceGetUUID(Device device, char *uuid, unsigned int size) {
    Return code = enter("nvmlDeviceGetUUID", device);
    hang_if_told(device, "uuid");
    return code == OK ? uuid_of(device, uuid, size) : code;
}

Return nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    char found[96], profile[32];
    log_call("nvmlDeviceGetHandleByUUID", NULL);
    Return code = ready();
    for (int gpu = 0; code == OK && gpu < plain("gpus"); gpu++)
        for (int mig = -1; mig < MAX_MIGS; mig++) {
            const Instance candidate = {.gpu = gpu, .mig = mig};
            if (mig >= 0 && !mig_profile(gpu, mig, profile, sizeof profile))
                continue;
            if (uuid_of(&candidate, found, sizeof found) == OK && strcmp(found, uuid) == 0) {
                *device = device_of(gpu, mig);
                return lost(&candidate);
            }
        }
    return code == OK ? NOT_FOUND : code;
}

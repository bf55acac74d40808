/* What a GPU is, and where: what an inventory asks for. */
#include "fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    unsigned int sm_count, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned int gpu_slices, compute_slices;
    unsigned long long memory_mb;
} Attributes;

enum { REMOTE_GPU = 0, REMOTE_SWITCH = 2, SMS_A_SLICE = 16 };

static Instance whole_of(const Instance *device) {
    return (Instance){.gpu = device->gpu, .mig = -1, .epoch = device->epoch};
}

Return nvmlDeviceGetName(Device device, char *name, unsigned int size) {
    char start[96], profile[32];
    Return code = enter("nvmlDeviceGetName", device);
    if (code != OK || device->mig < 0)
        return code == OK ? text(device, "name", "Fake GPU", name, size) : code;
    const Instance whole = whole_of(device);
    code = text(&whole, "name", "Fake GPU", start, sizeof start);
    mig_profile(device->gpu, device->mig, profile, sizeof profile);
    if (code == OK && snprintf(name, size, "%s MIG %s", start, profile) >= (int)size)
        code = INSUFFICIENT_SIZE;
    return code;
}

static Return pci_of(const Instance *device, PciInfo *info) {
    char otherwise[32];
    memset(info, 0, sizeof *info);
    snprintf(otherwise, sizeof otherwise, "00000000:%02X:00.0", (unsigned int)device->gpu + 1);
    Return code = text(device, "pci", otherwise, info->bus_id, sizeof info->bus_id);
    if (code == OK) {
        sscanf(info->bus_id, "%x:%x:%x", &info->domain, &info->bus, &info->device);
        snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0",
                 info->domain & 0xffff, info->bus & 0xff, info->device & 0xff);
    }
    return code;
}

Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
    Return code = enter("nvmlDeviceGetPciInfo_v3", device);
    if (code == OK && device->mig >= 0)
        code = NOT_SUPPORTED;
    return code == OK ? pci_of(device, info) : code;
}

static Return compute_of(const Instance *device, int *major, int *minor) {
    char words[16];
    Return code = text(device, "compute", "9.0", words, sizeof words);
    if (code == OK)
        sscanf(words, "%d.%d", major, minor);
    return code;
}

Return nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    Return code = enter("nvmlDeviceGetCudaComputeCapability", device);
    if (code == OK && device->mig >= 0)
        code = NOT_SUPPORTED;
    return code == OK ? compute_of(device, major, minor) : code;
}

Return nvmlDeviceGetComputeMode(Device device, unsigned int *mode) {
    double value = 0;
    Return code = enter("nvmlDeviceGetComputeMode", device);
    if (code == OK && device->mig >= 0)
        code = NOT_SUPPORTED;
    if (code == OK)
        code = number(device, ANY, "compute_mode", "0", &value);
    *mode = (unsigned int)value;
    return code;
}

Return nvmlDeviceGetNumGpuCores(Device device, unsigned int *cores) {
    int major = 0, minor = 0;
    double count = 0;
    Return code = enter("nvmlDeviceGetNumGpuCores", device);
    if (code == OK && device->mig >= 0)
        code = NOT_SUPPORTED;
    if (code == OK)
        code = number(device, ANY, "sm_count", "132", &count);
    if (code == OK)
        code = compute_of(device, &major, &minor);
    /* CUDA cores of a multiprocessor, from the CUDA guide's table of compute capabilities */
    *cores = (unsigned int)count * (major == 7 || (major == 8 && minor == 0) ? 64 : 128);
    return code;
}

Return nvmlDeviceGetMaxClockInfo(Device device, unsigned int type, unsigned int *clock) {
    double value = 0;
    Return code = enter("nvmlDeviceGetMaxClockInfo", device);
    if (code == OK && device->mig >= 0)
        code = NOT_SUPPORTED;
    if (code == OK)
        code = number(device, ANY, type == 2 ? "clock_memory" : "clock_sm_max", "1980", &value);
    *clock = (unsigned int)value;
    return code;
}

/* MIG */

Return nvmlDeviceGetMigMode(Device device, unsigned int *current, unsigned int *pending) {
    char unused[2];
    Return code = enter("nvmlDeviceGetMigMode", device);
    if (code == OK && device->mig >= 0)
        code = INVALID_ARGUMENT;
    if (code == OK)
        *current = *pending = (unsigned int)find(device, ANY, "mig", 0, unused, sizeof unused);
    return code;
}

Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned int *count) {
    *count = MAX_MIGS;
    return enter("nvmlDeviceGetMaxMigDeviceCount", device);
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned int index, Device *mig) {
    char profile[32];
    Return code = enter("nvmlDeviceGetMigDeviceHandleByIndex", device);
    if (code == OK && (device->mig >= 0 || index >= MAX_MIGS))
        code = INVALID_ARGUMENT;
    if (code == OK && !mig_profile(device->gpu, (int)index, profile, sizeof profile))
        code = NOT_FOUND;
    if (code == OK)
        *mig = device_of(device->gpu, (int)index);
    return code;
}

Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig, Device *device) {
    Return code = enter("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig);
    if (code == OK)
        *device = device_of(mig->gpu, -1);
    return code;
}

Return nvmlDeviceGetGpuInstanceId(Device device, unsigned int *id) {
    Return code = enter("nvmlDeviceGetGpuInstanceId", device);
    *id = (unsigned int)(device->mig + FIRST_GPU_INSTANCE);
    return code == OK && device->mig < 0 ? NOT_SUPPORTED : code;
}

Return nvmlDeviceGetComputeInstanceId(Device device, unsigned int *id) {
    Return code = enter("nvmlDeviceGetComputeInstanceId", device);
    *id = 0;
    return code == OK && device->mig < 0 ? NOT_SUPPORTED : code;
}

Return nvmlDeviceGetAttributes_v2(Device device, Attributes *attributes) {
    char profile[32];
    Return code = enter("nvmlDeviceGetAttributes_v2", device);
    if (code == OK && device->mig < 0)
        code = NOT_SUPPORTED;
    if (code != OK)
        return code;
    memset(attributes, 0, sizeof *attributes);
    mig_profile(device->gpu, device->mig, profile, sizeof profile);
    attributes->gpu_slices = attributes->compute_slices = (unsigned int)atoi(profile);
    attributes->sm_count = attributes->gpu_slices * SMS_A_SLICE;
    return OK;
}

/* Neighbours */

Return nvmlDeviceGetMemoryAffinity(Device device, unsigned int size, unsigned long *nodes,
                                   unsigned int scope) {
    double node = 0;
    (void)scope;
    Return code = enter("nvmlDeviceGetMemoryAffinity", device);
    if (code == OK)
        code = number(device, ANY, "numa", "0", &node);
    memset(nodes, 0, size * sizeof *nodes);
    if (code == OK && node / 64 < size)
        nodes[(int)node / 64] = 1ul << ((int)node % 64);
    return code;
}

Return nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned int *level) {
    double node = 0, other = 0, value = 0;
    Return code = enter("nvmlDeviceGetTopologyCommonAncestor", first);
    if (code != OK)
        return code;
    number(first, ANY, "numa", "0", &node);
    number(second, ANY, "numa", "0", &other);
    code = number(first, ANY, "topology", node == other ? "40" : "50", &value);
    *level = (unsigned int)value;
    return code;
}

/* Copy where a link goes: "switch", a GPU's index, or "-". */
static Return remote_of(const char *symbol, Device device, unsigned int link, char *remote,
                        size_t size) {
    char all[128];
    double count = 0;
    Return code = enter(symbol, device);
    if (code == OK)
        code = number(device, ANY, "nvlinks", "0", &count);
    if (code == OK && (count == 0 || device->mig >= 0))
        code = NOT_SUPPORTED;
    if (code == OK && link >= count)
        code = INVALID_ARGUMENT;
    if (code != OK)
        return code;
    snprintf(remote, size, "switch");
    if (find(device, ANY, "nvlink_remote", 0, all, sizeof all)) {
        char *rest = all, *item = strsep(&rest, ",");
        while (link-- && item)
            item = strsep(&rest, ",");
        snprintf(remote, size, "%s", item ? item : "-");
    }
    return OK;
}

Return nvmlDeviceGetNvLinkState(Device device, unsigned int link, unsigned int *active) {
    char remote[16];
    Return code = remote_of("nvmlDeviceGetNvLinkState", device, link, remote, sizeof remote);
    if (code == OK)
        *active = *remote != '-';
    return code;
}

Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned int link, unsigned int *type) {
    char remote[16];
    Return code =
        remote_of("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, remote, sizeof remote);
    if (code == OK)
        *type = strcmp(remote, "switch") == 0 ? REMOTE_SWITCH : REMOTE_GPU;
    return code;
}

Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned int link, PciInfo *info) {
    char remote[16];
    Return code =
        remote_of("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, remote, sizeof remote);
    if (code != OK || *remote == '-')
        return code == OK ? NOT_SUPPORTED : code;
    const Instance other = {.gpu = *remote == 's' ? 0xdf : atoi(remote), .mig = -1};
    return pci_of(&other, info);
}

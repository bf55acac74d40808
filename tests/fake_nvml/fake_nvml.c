/* A stand-in for NVIDIA's libnvidia-ml.so.1, with the symbols that our inventory asks pynvml for.
 *
 * What it tells comes from the file that FAKE_NVML_STATE names: one key=value a line.
 *   gpus=8              number of GPUs
 *   name=NVIDIA H100    their name
 *   memory=85899345920  bytes of each
 *   uuid=GPU-fake       start of their UUIDs; the index follows
 *   driver=570.1        the driver's version
 *   init_error=9        what nvmlInit returns
 *   list_error=15       what nvmlDeviceGetUUID returns for the last GPU
 *   hang=1              listing GPUs never returns
 * See https://docs.nvidia.com/deploy/nvml-api/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define INVALID_ARGUMENT 2
#define INSUFFICIENT_SIZE 7

typedef int Return;
typedef struct {
    int index;
} *Device;

typedef struct {
    unsigned long long total, free, used;
} Memory;

typedef struct {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

static struct {
    int index;
} devices[64];

/* Copy the value of a key; return whether the state file has it. */
static int read_value(const char *key, char *value, size_t size) {
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256];
    size_t length = strlen(key);
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            line[strcspn(line, "\n")] = 0;
            snprintf(value, size, "%s", line + length + 1);
            found = 1;
        }
    }
    if (file)
        fclose(file);
    return found;
}

static long long number(const char *key, long long otherwise) {
    char value[64];
    return read_value(key, value, sizeof value) ? atoll(value) : otherwise;
}

static Return text(const char *key, const char *otherwise, char *buffer, unsigned int size) {
    char value[128];
    if (!read_value(key, value, sizeof value))
        snprintf(value, sizeof value, "%s", otherwise);
    if (strlen(value) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return OK;
}

Return nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    return (Return)number("init_error", OK);
}

Return nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(Return code) {
    switch (code) {
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

Return nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    return text("driver", "570.00", version, size);
}

Return nvmlDeviceGetCount_v2(unsigned int *count) {
    while (number("hang", 0))
        sleep(1);
    *count = (unsigned int)number("gpus", 0);
    return OK;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device *device) {
    if (index >= number("gpus", 0))
        return INVALID_ARGUMENT;
    devices[index].index = (int)index;
    *device = (Device)&devices[index];
    return OK;
}

Return nvmlDeviceGetName(Device device, char *name, unsigned int size) {
    (void)device;
    return text("name", "Fake GPU", name, size);
}

Return nvmlDeviceGetUUID(Device device, char *uuid, unsigned int size) {
    char start[64];
    if (device->index == number("gpus", 0) - 1 && number("list_error", OK))
        return (Return)number("list_error", OK);
    text("uuid", "GPU-fake", start, sizeof start);
    snprintf(uuid, size, "%s-%d", start, device->index);
    return OK;
}

Return nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    (void)device;
    memory->total = (unsigned long long)number("memory", 1 << 30);
    memory->free = memory->total;
    memory->used = 0;
    return OK;
}

Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
    memset(info, 0, sizeof *info);
    info->bus = (unsigned int)device->index + 1;
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0", info->bus);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return OK;
}

Return nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    (void)device;
    *major = 9;
    *minor = 0;
    return OK;
}

/* What is sampled of a GPU again and again. */
#define _GNU_SOURCE
#include "fake_nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long Wide;

/* A MIG instance tells only what the state says of it alone. */
static Scope scope_of(Device device) { return device->mig >= 0 ? OWN : ANY; }

static Return sample(Device device, const char *key, const char *otherwise, double *value) {
    Scope scope = scope_of(device);
    return number(device, scope, key, scope == ANY ? otherwise : NULL, value);
}

/* What no GPU tells that is divided into MIG instances. */
static Return sample_undivided(Device device, const char *key, double *value) {
    int divided = mig_count(device->gpu) > 0;
    return number(device, divided ? OWN : ANY, key, divided ? NULL : "0", value);
}

/* A function that returns one number. */
#define ONE_NUMBER(symbol, type, key, otherwise)                                                   \
    Return symbol(Device device, type *result) {                                                   \
        double value = 0;                                                                          \
        Return code = enter(#symbol, device);                                                      \
        if (code == OK)                                                                            \
            code = sample(device, key, otherwise, &value);                                         \
        *result = (type)value;                                                                     \
        return code;                                                                               \
    }

ONE_NUMBER(nvmlDeviceGetPowerUsage, unsigned int, "power", "70000")
ONE_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned int, "power_limit", "700000")
ONE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, "power_limit", "700000")
ONE_NUMBER(nvmlDeviceGetFanSpeed, unsigned int, "fan", "30")
ONE_NUMBER(nvmlDeviceGetPerformanceState, unsigned int, "pstate", "0")
ONE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, Wide, "throttle", "1")
ONE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, Wide, "throttle", "1")
ONE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, Wide, "energy", "rate(300000)")

/* A function that is told which of several numbers to return. */
#define CHOSEN_NUMBER(symbol, type, key, otherwise)                                                \
    Return symbol(Device device, unsigned int which, type *result) {                               \
        double value = 0;                                                                          \
        Return code = enter(#symbol, device);                                                      \
        (void)which;                                                                               \
        if (code == OK)                                                                            \
            code = sample(device, key, otherwise, &value);                                         \
        *result = (type)value;                                                                     \
        return code;                                                                               \
    }

enum { MEMORY_CLOCK = 2 };

CHOSEN_NUMBER(nvmlDeviceGetTemperature, unsigned int, "temperature", "35")
CHOSEN_NUMBER(nvmlDeviceGetClockInfo, unsigned int,
              which == MEMORY_CLOCK ? "clock_memory" : "clock_sm",
              which == MEMORY_CLOCK ? "2619" : "345")

Return nvmlDeviceGetTotalEccErrors(Device device, unsigned int type, unsigned int counter,
                                   Wide *count) {
    double value = 0;
    Return code = enter("nvmlDeviceGetTotalEccErrors", device);
    (void)counter;
    if (code == OK)
        code = sample(device, type ? "ecc_uncorrected" : "ecc_corrected", "0", &value);
    *count = (Wide)value;
    return code;
}

Return nvmlDeviceGetUtilizationRates(Device device, unsigned int rates[2]) {
    double gpu = 0, memory = 0;
    Return code = enter("nvmlDeviceGetUtilizationRates", device);
    if (code == OK)
        code = sample_undivided(device, "utilization", &gpu);
    if (code == OK)
        code = sample_undivided(device, "memory_utilization", &memory);
    rates[0] = (unsigned int)gpu;
    rates[1] = (unsigned int)memory;
    return code;
}

static Return codec(const char *symbol, Device device, const char *key, unsigned int *use,
                    unsigned int *period) {
    double value = 0;
    Return code = enter(symbol, device);
    if (code == OK)
        code = sample_undivided(device, key, &value);
    *use = (unsigned int)value;
    *period = 167000; /* microseconds */
    return code;
}

Return nvmlDeviceGetEncoderUtilization(Device device, unsigned int *use, unsigned int *period) {
    return codec("nvmlDeviceGetEncoderUtilization", device, "encoder", use, period);
}

Return nvmlDeviceGetDecoderUtilization(Device device, unsigned int *use, unsigned int *period) {
    return codec("nvmlDeviceGetDecoderUtilization", device, "decoder", use, period);
}

/* Memory */

typedef struct {
    Wide total, free, used;
} Memory;

typedef struct {
    unsigned int version;
    Wide total, reserved, free, used;
} MemoryV2;

static Return memory_of(const char *symbol, Device device, MemoryV2 *memory) {
    char profile[32], otherwise[32] = "1073741824";
    double total = 0, used = 0, reserved = 0;
    int slices = 0, gib = 0;
    Return code = enter(symbol, device);
    if (code != OK)
        return code;
    if (device->mig >= 0) {
        mig_profile(device->gpu, device->mig, profile, sizeof profile);
        if (sscanf(profile, "%dg.%dgb", &slices, &gib) == 2)
            snprintf(otherwise, sizeof otherwise, "%llu", (Wide)gib << 30);
    }
    code = number(device, scope_of(device), "memory", otherwise, &total);
    if (code == OK)
        code = number(device, scope_of(device), "memory_used", "0", &used);
    if (code == OK)
        code = number(device, scope_of(device), "memory_reserved", "0", &reserved);
    memory->total = (Wide)total;
    memory->used = (Wide)used;
    memory->reserved = (Wide)reserved;
    memory->free = memory->total - memory->used - memory->reserved;
    return code;
}

Return nvmlDeviceGetMemoryInfo(Device device, Memory *result) {
    MemoryV2 memory = {0};
    Return code = memory_of("nvmlDeviceGetMemoryInfo", device, &memory);
    *result = (Memory){memory.total, memory.free, memory.used + memory.reserved};
    return code;
}

Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2 *result) {
    return memory_of("nvmlDeviceGetMemoryInfo_v2", device, result);
}

/* Links */

Return nvmlDeviceGetPcieThroughput(Device device, unsigned int counter, unsigned int *rate) {
    double value = 0, milliseconds = 0;
    Return code = enter("nvmlDeviceGetPcieThroughput", device);
    number(device, ANY, "slow_pcie", "0", &milliseconds);
    usleep((useconds_t)(milliseconds * 1000));
    if (code == OK)
        code = sample(device, counter ? "pcie_rx" : "pcie_tx", "0", &value);
    *rate = (unsigned int)value;
    return code;
}

typedef struct {
    unsigned int id, scope;
    long long timestamp, latency; /* microseconds */
    unsigned int type, code;
    union {
        double number;
        unsigned int small;
        Wide wide;
    } value;
} Field;

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3, ALL_LINKS = -1 };

static const struct {
    unsigned int id;
    const char *key, *otherwise;
    double factor;
    unsigned int type;
} fields[] = {
    {83, "energy", "rate(300000)", 1, UNSIGNED_LONG_LONG},
    {91, "nvlinks", "0", 1, UNSIGNED_INT},
    {138, "nvlink_tx", NULL, 1, UNSIGNED_LONG_LONG}, /* NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX */
    {139, "nvlink_rx", NULL, 1, UNSIGNED_LONG_LONG},
    {140, "nvlink_tx", NULL, 1.1, UNSIGNED_LONG_LONG}, /* with the protocol's overhead */
    {141, "nvlink_rx", NULL, 1.1, UNSIGNED_LONG_LONG},
    {185, "power", "70000", 1, UNSIGNED_INT},
    {186, "power", "70000", 1, UNSIGNED_INT},
};

Return nvmlDeviceGetFieldValues(Device device, int count, Field *values) {
    Return code = enter("nvmlDeviceGetFieldValues", device);
    for (Field *field = values; code == OK && field < values + count; field++) {
        field->timestamp = (long long)(now() * 1e6);
        field->code = NOT_SUPPORTED;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            double value = 0, links = 0;
            if (fields[i].id != field->id)
                continue;
            field->code = sample(device, fields[i].key, fields[i].otherwise, &value);
            field->type = fields[i].type;
            number(device, ANY, "nvlinks", "0", &links);
            if (strncmp(fields[i].key, "nvlink_", 7) == 0 && (int)field->scope != ALL_LINKS) {
                if (field->scope >= links)
                    field->code = INVALID_ARGUMENT;
                value /= links ? links : 1; /* a link's share of what all of them moved */
            }
            field->value.wide = (Wide)(value * fields[i].factor);
        }
    }
    return code;
}

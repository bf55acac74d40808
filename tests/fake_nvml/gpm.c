/* GPU performance monitoring: metrics of what happened between two samples. */
#include "fake_nvml.h"

#include <stdlib.h>

enum { SM_ACTIVE = 2, TENSOR_ACTIVE = 5, DRAM_ACTIVE = 10 };

typedef struct {
    double time;
    Instance of;
} Sample;

typedef struct {
    unsigned int id, code;
    double value;
    const char *short_name, *long_name, *unit;
} Metric;

typedef struct {
    unsigned int version, count;
    const Sample *first, *second;
    Metric metrics[];
} MetricsGet;

Return nvmlGpmQueryDeviceSupport(Device device, unsigned int support[2]) {
    double value = 0;
    Return code = enter("nvmlGpmQueryDeviceSupport", device);
    if (code == OK)
        code = number(device, ANY, "gpm", "0", &value);
    support[1] = value != 0; /* the first is the version */
    return code;
}

Return nvmlGpmSampleAlloc(Sample **sample) {
    log_call("nvmlGpmSampleAlloc", NULL);
    *sample = calloc(1, sizeof **sample);
    return *sample ? OK : UNKNOWN;
}

Return nvmlGpmSampleFree(Sample *sample) {
    log_call("nvmlGpmSampleFree", NULL);
    free(sample);
    return OK;
}

static Return take(Device device, int mig, Sample *sample) {
    double supported = 0, unused;
    Return code = number(device, ANY, "gpm", "0", &supported);
    if (code == OK && !supported)
        code = NOT_SUPPORTED;
    if (code == OK)
        code = number(device, ANY, "gpm_sample", "0", &unused);
    if (code == OK)
        *sample = (Sample){.time = now(), .of = {.gpu = device->gpu, .mig = mig}};
    return code;
}

Return nvmlGpmSampleGet(Device device, Sample *sample) {
    Return code = enter("nvmlGpmSampleGet", device);
    return code == OK ? take(device, -1, sample) : code;
}

/* `device` is the parent of the GPU instance. */
Return nvmlGpmMigSampleGet(Device device, unsigned int gpu_instance, Sample *sample) {
    char profile[32];
    int mig = (int)gpu_instance - FIRST_GPU_INSTANCE;
    Return code = enter("nvmlGpmMigSampleGet", device);
    if (code == OK && (mig < 0 || !mig_profile(device->gpu, mig, profile, sizeof profile)))
        code = NOT_FOUND;
    return code == OK ? take(device, mig, sample) : code;
}

Return nvmlGpmMetricsGet(MetricsGet *get) {
    log_call("nvmlGpmMetricsGet", NULL);
    if (get->version != 1 || !get->first || !get->second || get->first->time == 0 ||
        get->second->time <= get->first->time || get->first->of.gpu != get->second->of.gpu)
        return INVALID_ARGUMENT;
    for (unsigned int i = 0; i < get->count; i++) {
        Metric *metric = &get->metrics[i];
        const char *key = metric->id == SM_ACTIVE       ? "gpm_sm"
                          : metric->id == TENSOR_ACTIVE ? "gpm_tensor"
                          : metric->id == DRAM_ACTIVE   ? "gpm_dram"
                                                        : NULL;
        metric->code = NOT_SUPPORTED;
        if (key)
            metric->code = number(&get->second->of, ANY, key, "0", &metric->value);
    }
    return OK;
}

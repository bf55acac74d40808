/* What the files of the fake NVML share; fake_nvml.c says what the state file holds. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stddef.h>

/* Return codes, as in nvml.h. */
typedef enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
    LIB_RM_VERSION_MISMATCH = 18,
    UNKNOWN = 999,
} Return;

/* What a handle points to: a GPU, or one MIG instance of it. */
typedef struct {
    int gpu;
    int mig;   /* -1: the whole GPU */
    int epoch; /* the initialisation that gave the handle: older handles are refused */
} Instance;
typedef Instance *Device;

enum { MAX_GPUS = 64, MAX_MIGS = 7 };

/* state.c: the state file, and the log of calls. */

/* Which lines of the state file count: */
typedef enum {
    ANY, /* the GPU's own, else those for all GPUs */
    OWN, /* the GPU's (or MIG instance's) own alone */
} Scope;

/* Copy the value of the nth line with this key; return whether there is one. */
int find(const Instance *device, Scope scope, const char *key, int nth, char *value, size_t size);
/* Read a number or a curve; `!word` is an error, and a missing key is `otherwise` (NULL: not
 * supported). Does not return while the state says that this key hangs. */
Return number(const Instance *device, Scope scope, const char *key, const char *otherwise,
              double *value);
/* The same for text, into a buffer of NVML's. */
Return text(const Instance *device, const char *key, const char *otherwise, char *buffer,
            unsigned int size);
/* Turn "40", "sine(8,0,100)" or "rate(1000)" into a number; whether it is an error is said. */
Return evaluate(const char *words, double *value);
void hang_if_told(const Instance *device, const char *key);
void log_call(const char *symbol, const Instance *device);
double now(void);

/* fake_nvml.c: handles. */

/* What every call on a device begins with: log it, and refuse it if the GPU is lost. */
Return enter(const char *symbol, Device device);
int mig_count(int gpu);
/* Copy the profile ("1g.10gb") of a place; return whether there is an instance. */
int mig_profile(int gpu, int place, char *profile, size_t size);
/* NVML's GPU instance id of a MIG place, and back. */
enum { FIRST_GPU_INSTANCE = 7 };
Device device_of(int gpu, int mig);

#endif

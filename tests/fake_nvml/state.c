/* The state file of the fake NVML, read again whenever it is replaced; and the log of calls. */
#define _GNU_SOURCE
#include "fake_nvml.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *content;
static struct stat seen;

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Read the file if it is another one than last time. Whoever writes it renames it into place. */
static void refresh(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    struct stat found;
    if (!path || stat(path, &found) != 0)
        return; /* keep what was known */
    if (content && found.st_ino == seen.st_ino && found.st_size == seen.st_size &&
        found.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
        found.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    fstat(fileno(file), &found); /* of the file that is read, should it just have been replaced */
    char *fresh = malloc((size_t)found.st_size + 1);
    if (fresh) {
        fresh[fread(fresh, 1, (size_t)found.st_size, file)] = 0;
        free(content);
        content = fresh;
        seen = found;
    }
    fclose(file);
}

/* Copy the value of the nth line that starts with `start` and '='. */
static int find_line(const char *start, int nth, char *value, size_t size) {
    size_t length = strlen(start);
    for (const char *line = content; line && *line;) {
        size_t end = strcspn(line, "\n");
        if (end > length && strncmp(line, start, length) == 0 && line[length] == '=' && !nth--) {
            snprintf(value, size, "%.*s", (int)(end - length - 1), line + length + 1);
            return 1;
        }
        line += end + (line[end] == '\n');
    }
    return 0;
}

int find(const Instance *device, Scope scope, const char *key, int nth, char *value, size_t size) {
    char own[96], unused[2];
    int found = 0;
    if (device && device->mig >= 0)
        snprintf(own, sizeof own, "%d:%d.%s", device->gpu, device->mig, key);
    else if (device)
        snprintf(own, sizeof own, "%d.%s", device->gpu, key);
    pthread_mutex_lock(&lock);
    refresh();
    /* Lines of its own hide those for all, however many there are of each. */
    if (device && find_line(own, 0, unused, sizeof unused))
        found = find_line(own, nth, value, size);
    else if (scope == ANY)
        found = find_line(key, nth, value, size);
    pthread_mutex_unlock(&lock);
    return found;
}

void hang_if_told(const Instance *device, const char *key) {
    for (int told = 1; told;) {
        char hangs[64];
        told = 0;
        for (int nth = 0; find(device, ANY, "hang", nth, hangs, sizeof hangs); nth++)
            told |= strcmp(hangs, key) == 0;
        if (told)
            usleep(20 * 1000);
    }
}

static Return error_of(const char *word) {
    static const struct {
        const char *word;
        Return code;
    } errors[] = {
        {"unsupported", NOT_SUPPORTED}, {"permission", NO_PERMISSION}, {"lost", GPU_IS_LOST},
        {"reset", RESET_REQUIRED},      {"timeout", TIMEOUT},          {"unknown", UNKNOWN},
        {"missing", FUNCTION_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(word, errors[i].word) == 0)
            return errors[i].code;
    int code = atoi(word);
    return code ? (Return)code : UNKNOWN;
}

Return evaluate(const char *words, double *value) {
    double period, low, high, rate;
    if (*words == '!')
        return error_of(words + 1);
    if (sscanf(words, "sine(%lf,%lf,%lf)", &period, &low, &high) == 3)
        *value = low + (high - low) * (1 - cos(2 * M_PI * now() / period)) / 2;
    else if (sscanf(words, "rate(%lf)", &rate) == 1)
        *value = rate * now();
    else
        *value = atof(words);
    return OK;
}

Return number(const Instance *device, Scope scope, const char *key, const char *otherwise,
              double *value) {
    char words[128];
    hang_if_told(device, key);
    if (find(device, scope, key, 0, words, sizeof words))
        return evaluate(words, value);
    return otherwise ? evaluate(otherwise, value) : NOT_SUPPORTED;
}

Return text(const Instance *device, const char *key, const char *otherwise, char *buffer,
            unsigned int size) {
    char words[128];
    hang_if_told(device, key);
    if (!find(device, ANY, key, 0, words, sizeof words))
        snprintf(words, sizeof words, "%s", otherwise);
    if (*words == '!')
        return error_of(words + 1);
    if (strlen(words) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, words);
    return OK;
}

void log_call(const char *symbol, const Instance *device) {
    const char *path = getenv("FAKE_NVML_LOG");
    char line[96];
    if (!path)
        return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    int length;
    if (device && device->mig >= 0)
        length = snprintf(line, sizeof line, "%s %d:%d\n", symbol, device->gpu, device->mig);
    else if (device)
        length = snprintf(line, sizeof line, "%s %d\n", symbol, device->gpu);
    else
        length = snprintf(line, sizeof line, "%s\n", symbol);
    if (write(file, line, (size_t)length) != length)
        perror("FAKE_NVML_LOG");
    close(file);
}

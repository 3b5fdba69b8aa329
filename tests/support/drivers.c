/* Stand-ins for drivers' own libraries, for test_windows_drivers.py and test_wine_host.py: cards, and ways to fail. */
#include <stdio.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#define sleep(seconds) Sleep(1000 * (seconds))
#else
#include <unistd.h>
#endif

#ifdef HIP
int hipGetDeviceCount(int *count) {
#ifdef HANGS
    sleep(60);
#endif
#ifdef CRASHES
    *(volatile int *)0 = 1;
#endif
#ifdef CHATS
    puts("driver says hello"), fflush(stdout);
#endif
#ifdef REFUSES
    return 3;
#endif
#ifdef NONE
    return 100;
#endif
    return *count = 2, 0;
}
#ifdef OLD
int hipGetDeviceProperties(char *properties, int device) {
#else
int hipGetDevicePropertiesR0600(char *properties, int device) {
#endif
    strcpy(properties, device ? "AMD Radeon RX 9070 XT gfx9" : "AMD Radeon(TM) Graphics");
    strcpy(properties + 1160, device ? "gfx1201" : "gfx1036:xnack-");
    return 0;
}
int hipDeviceGetPCIBusId(char *address, int length, int device) {
    return snprintf(address, length, device ? "0000:03:00.0" : "0000:1A:00.0"), 0;
}
int hipDeviceTotalMem(size_t *total, int device) { return *total = 17095983104ull, 0; }
#endif

#ifdef NVML
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char address[32];
} pci;

int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { return snprintf(version, length, "581.29"), 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { return *version = 13000, 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { return *handle = (void *)0x7fff00000000, 0; }
int nvmlDeviceGetName(void *handle, char *name, unsigned length) { return snprintf(name, length, "NVIDIA Test"), 0; }
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned length) { return snprintf(uuid, length, "GPU-1"), 0; }
int nvmlDeviceGetPciInfo_v3(void *handle, pci *info) {
    memset(info, 0, sizeof *info);
    info->ids = 0x2c5810de;
    return snprintf(info->address, 32, "00000000:41:00.0"), 0;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) { return *major = 12, *minor = 0, 0; }
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) { return memory[0] = 34359738368ull, 0; }
#endif

#ifdef CUDA
int cuInit(unsigned flags) { return 500; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
#endif

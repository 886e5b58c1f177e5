// Stands in for cuBLAS, cuRAND, NVRTC and the CUDA runtime, as far as candle calls them without one of its kernels for
// quantised models: it creates a handle of cuBLAS and a generator of cuRAND with each device. A matrix product is a kernel
// without code on the stream of the handle, so that the simulated device works for it.
#include <stdlib.h>

// Of the driver.
int cuModuleLoadData(void **module, const char *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra);

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, EXECUTION_FAILED = 13 };

struct cublas {
    void *module, *gemm, *stream;
};

int cublasCreate_v2(struct cublas **handle) {
    struct cublas *new = calloc(1, sizeof *new);
    if (!new)
        return ALLOC_FAILED;
    const char *ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry gemm() { ret; }\n";
    if (cuModuleLoadData(&new->module, ptx) || cuModuleGetFunction(&new->gemm, new->module, "gemm")) {
        free(new);
        return NOT_INITIALIZED;
    }
    *handle = new;
    return SUCCESS;
}

int cublasDestroy_v2(struct cublas *handle) {
    int failed = cuModuleUnload(handle->module);
    free(handle);
    return failed ? NOT_INITIALIZED : SUCCESS;
}

int cublasSetStream_v2(struct cublas *handle, void *stream) {
    handle->stream = stream;
    return SUCCESS;
}

// What to multiply follows the handle, here and below.
int cublasGemmStridedBatchedEx(struct cublas *handle) {
    int failed = cuLaunchKernel(handle->gemm, 1, 1, 1, 1, 1, 1, 0, handle->stream, NULL, NULL);
    return failed ? EXECUTION_FAILED : SUCCESS;
}

int cublasDgemmStridedBatched(struct cublas *handle) { return cublasGemmStridedBatchedEx(handle); }

int curandCreateGenerator(void **generator, int kind) {
    *generator = malloc(1);
    return *generator ? SUCCESS : ALLOC_FAILED;
}

int curandDestroyGenerator(void *generator) {
    free(generator);
    return SUCCESS;
}

int curandSetPseudoRandomGeneratorSeed(void *generator, unsigned long long seed) { return SUCCESS; }

int curandSetStream(void *generator, void *stream) { return SUCCESS; }

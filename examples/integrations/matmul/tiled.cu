// product = left * right, all of them square and row by row; `side` is a multiple of 16, and so is a block.
extern "C" __global__ void matmul_tiled(unsigned side, const float *left, const float *right, float *product) {
    __shared__ float of_left[16][16], of_right[16][16];
    unsigned row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (unsigned tile = 0; tile < side; tile += 16) {
        of_left[threadIdx.y][threadIdx.x] = left[row * side + tile + threadIdx.x];
        of_right[threadIdx.y][threadIdx.x] = right[(tile + threadIdx.y) * side + column];
        __syncthreads();
        for (unsigned i = 0; i < 16; i++) sum += of_left[threadIdx.y][i] * of_right[i][threadIdx.x];
        __syncthreads();
    }
    product[row * side + column] = sum;
}

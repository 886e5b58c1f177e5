// The library of this name for versions of Wine that have none, with the one function that Rust's standard library
// takes from it: random bytes, here from the library that had them before.

#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T length) {
    return RtlGenRandom(data, (ULONG)length);
}

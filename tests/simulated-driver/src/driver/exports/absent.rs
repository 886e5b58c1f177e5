//! Entry points that this driver exports but does not model. Each returns 801, not supported.
//!
//! Older bindings look up all entry points at once and fail if one is missing.

use crate::driver::code::NOT_SUPPORTED;
use crate::driver::entry::entry_points;

/// Declares entry points by the version that introduced them. Their arguments are ignored.
macro_rules! absent {
    ($($since:literal: $($name:ident)*;)*) => {
        entry_points! {
            $($($name() since $since => |_| Err(NOT_SUPPORTED);)*)*
        }
    };
}

absent! {
    11_000:
        cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayCreate_v2 cuArrayDestroy
        cuArrayGetDescriptor_v2 cuArrayGetPlane cuArrayGetSparseProperties cuCtxAttach cuCtxDetach
        cuCtxDisablePeerAccess cuCtxGetExecAffinity cuCtxGetSharedMemConfig
        cuCtxResetPersistingL2Cache cuCtxSetSharedMemConfig cuDestroyExternalMemory
        cuDestroyExternalSemaphore cuDeviceGetByPCIBusId cuDeviceGetExecAffinitySupport
        cuDeviceGetGraphMemAttribute cuDeviceGetLuid cuDeviceGetP2PAttribute cuDeviceGetProperties
        cuDeviceGetTexture1DLinearMaxWidth cuDeviceGraphMemTrim cuDeviceSetGraphMemAttribute
        cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray
        cuFlushGPUDirectRDMAWrites cuFuncGetModule cuFuncSetBlockShape cuFuncSetSharedMemConfig
        cuFuncSetSharedSize cuGetExportTable cuGraphAddChildGraphNode cuGraphAddDependencies
        cuGraphAddEmptyNode cuGraphAddEventRecordNode cuGraphAddEventWaitNode
        cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
        cuGraphAddHostNode cuGraphAddKernelNode cuGraphAddMemAllocNode cuGraphAddMemFreeNode
        cuGraphAddMemcpyNode cuGraphAddMemsetNode cuGraphChildGraphNodeGetGraph cuGraphClone
        cuGraphCreate cuGraphDebugDotPrint cuGraphDestroyNode cuGraphEventRecordNodeGetEvent
        cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent
        cuGraphExecChildGraphNodeSetParams cuGraphExecEventRecordNodeSetEvent
        cuGraphExecEventWaitNodeSetEvent cuGraphExecExternalSemaphoresSignalNodeSetParams
        cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecHostNodeSetParams
        cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
        cuGraphExecMemsetNodeSetParams cuGraphExecUpdate
        cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
        cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams
        cuGraphGetEdges cuGraphGetRootNodes cuGraphHostNodeGetParams cuGraphHostNodeSetParams
        cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams
        cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams cuGraphMemAllocNodeGetParams
        cuGraphMemFreeNodeGetParams cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams
        cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphNodeFindInClone
        cuGraphNodeGetDependencies cuGraphNodeGetDependentNodes cuGraphNodeGetType
        cuGraphReleaseUserObject cuGraphRemoveDependencies cuGraphRetainUserObject
        cuGraphicsMapResources cuGraphicsResourceGetMappedMipmappedArray
        cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags_v2
        cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources cuGraphicsUnregisterResource
        cuImportExternalMemory cuImportExternalSemaphore cuIpcCloseMemHandle cuIpcGetEventHandle
        cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle_v2 cuLaunch
        cuLaunchCooperativeKernelMultiDevice cuLaunchGrid cuLaunchGridAsync cuLinkAddFile_v2
        cuMemAddressFree
        cuMemAddressReserve cuMemAdvise cuMemAllocPitch_v2 cuMemCreate cuMemExportToShareableHandle
        cuMemGetAccess cuMemGetAddressRange_v2 cuMemGetAllocationGranularity
        cuMemGetAllocationPropertiesFromHandle cuMemHostGetFlags cuMemImportFromShareableHandle
        cuMemMap cuMemMapArrayAsync cuMemPoolExportPointer cuMemPoolExportToShareableHandle
        cuMemPoolGetAccess cuMemPoolImportFromShareableHandle cuMemPoolImportPointer
        cuMemPoolSetAccess cuMemPrefetchAsync cuMemRangeGetAttribute cuMemRangeGetAttributes
        cuMemRelease cuMemRetainAllocationHandle cuMemSetAccess cuMemUnmap cuMemcpy2DAsync_v2
        cuMemcpy2DUnaligned_v2 cuMemcpy2D_v2 cuMemcpy3DAsync_v2 cuMemcpy3DPeer cuMemcpy3DPeerAsync
        cuMemcpy3D_v2 cuMemcpyAtoA_v2 cuMemcpyAtoD_v2 cuMemcpyAtoHAsync_v2 cuMemcpyAtoH_v2
        cuMemcpyDtoA_v2 cuMemcpyHtoAAsync_v2 cuMemcpyHtoA_v2 cuMemcpyPeer cuMemsetD2D16Async
        cuMemsetD2D16_v2 cuMemsetD2D32Async cuMemsetD2D32_v2 cuMemsetD2D8Async cuMemsetD2D8_v2
        cuMipmappedArrayCreate cuMipmappedArrayDestroy cuMipmappedArrayGetLevel
        cuMipmappedArrayGetSparseProperties cuModuleGetSurfRef cuModuleGetTexRef
        cuModuleLoadFatBinary cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti cuParamSetv
        cuPointerGetAttribute cuPointerGetAttributes cuPointerSetAttribute cuProfilerInitialize
        cuSignalExternalSemaphoresAsync cuStreamBatchMemOp cuStreamCopyAttributes
        cuStreamGetAttribute cuStreamSetAttribute cuStreamUpdateCaptureDependencies
        cuStreamWaitValue32 cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64
        cuSurfObjectCreate cuSurfObjectDestroy cuSurfObjectGetResourceDesc cuSurfRefGetArray
        cuSurfRefSetArray cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc
        cuTexObjectGetResourceViewDesc cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy
        cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetBorderColor
        cuTexRefGetFilterMode cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy
        cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp
        cuTexRefGetMipmappedArray cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode
        cuTexRefSetAddress_v2 cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode
        cuTexRefSetFlags cuTexRefSetFormat cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode
        cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray
        cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain cuWaitExternalSemaphoresAsync;
    11_060:
        cuArrayGetMemoryRequirements cuGraphNodeGetEnabled cuGraphNodeSetEnabled
        cuMipmappedArrayGetMemoryRequirements;
    11_070:
        cuGraphAddBatchMemOpNode cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
        cuGraphExecBatchMemOpNodeSetParams cuMemGetHandleForAddressRange cuModuleGetLoadingMode
        cuStreamBatchMemOp_v2 cuStreamWaitValue32_v2 cuStreamWaitValue64_v2 cuStreamWriteValue32_v2
        cuStreamWriteValue64_v2;
    11_080:
        cuOccupancyMaxActiveClusters cuOccupancyMaxPotentialClusterSize;
    12_000:
        cuGraphAddKernelNode_v2 cuGraphExecGetFlags cuGraphExecKernelNodeSetParams_v2
        cuGraphExecUpdate_v2 cuGraphInstantiateWithParams cuGraphKernelNodeGetParams_v2
        cuGraphKernelNodeSetParams_v2 cuKernelGetAttribute cuKernelGetFunction cuKernelSetAttribute
        cuKernelSetCacheConfig cuLibraryGetGlobal cuLibraryGetKernel cuLibraryGetManaged
        cuLibraryGetModule cuLibraryGetUnifiedFunction cuLibraryLoadData cuLibraryLoadFromFile
        cuLibraryUnload cuTensorMapEncodeIm2col cuTensorMapEncodeTiled cuTensorMapReplaceAddress;
    12_010:
        cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpSetAttribute
        cuCoredumpSetAttributeGlobal cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindMem
        cuMulticastCreate cuMulticastGetGranularity cuMulticastUnbind;
    12_020:
        cuGraphAddNode cuGraphExecNodeSetParams cuGraphNodeSetParams cuMemAdvise_v2
        cuMemPrefetchAsync_v2;
    12_030:
        cuFuncGetName cuGraphAddDependencies_v2 cuGraphAddNode_v2 cuGraphConditionalHandleCreate
        cuGraphGetEdges_v2 cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes_v2
        cuGraphRemoveDependencies_v2 cuKernelGetName cuStreamBeginCaptureToGraph
        cuStreamUpdateCaptureDependencies_v2;
    12_040:
        cuCtxFromGreenCtx cuCtxGetDevResource cuDevResourceGenerateDesc cuDevSmResourceSplitByCount
        cuDeviceGetDevResource cuDeviceRegisterAsyncNotification
        cuDeviceUnregisterAsyncNotification cuFuncGetParamInfo cuFuncIsLoaded cuFuncLoad
        cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxRecordEvent
        cuGreenCtxWaitEvent cuKernelGetParamInfo cuLibraryEnumerateKernels cuLibraryGetKernelCount
        cuModuleEnumerateFunctions cuModuleGetFunctionCount cuStreamGetGreenCtx;
    12_050:
        cuCtxRecordEvent cuCtxWaitEvent cuGreenCtxStreamCreate cuKernelGetLibrary;
    12_080:
        cuMemBatchDecompressAsync cuMemcpy3DBatchAsync
        cuTensorMapEncodeIm2colWide;
    12_090:
        cuLogsCurrent cuLogsDumpToFile cuLogsDumpToMemory cuLogsRegisterCallback
        cuLogsUnregisterCallback;
    13_000:
        cuCtxGetDevice_v2 cuCtxSynchronize_v2 cuDeviceGetHostAtomicCapabilities
        cuDeviceGetP2PAtomicCapabilities cuGreenCtxGetId cuMemDiscardAndPrefetchBatchAsync
        cuMemDiscardBatchAsync cuMemGetDefaultMemPool cuMemGetMemPool cuMemPrefetchBatchAsync
        cuMemSetMemPool cuMemcpy3DBatchAsync_v2 cuMemcpyBatchAsync_v2;
    13_010:
        cuDevSmResourceSplit cuGraphExecGetId cuGraphGetId cuGraphNodeGetContainingGraph
        cuGraphNodeGetLocalId cuGraphNodeGetToolsId cuMulticastBindAddr_v2 cuMulticastBindMem_v2
        cuStreamGetDevResource;
}

// Not compared with the headers, since the arguments are not declared.
#[cfg(test)]
const _: fn() -> Vec<header_check::Item> = declared;

"""cudalock: locks Python wheels built for CUDA so that they run on the target, or proves none can."""

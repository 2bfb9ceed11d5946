"""Whether a lock still keeps what it promised: pure questions to its text, its target and knowledge.

A lock promises that its wheels are all there and satisfy each other, fit its target, are of one CUDA
and of one build of torch, and come from the inputs it was made of. `check_lock` asks all of that
without the network; `judge_machine` asks whether one machine can run it, `compare_installed` whether an
environment holds it. Reading files, the machine, the index and the clock is left to those who call.
"""

// Releases the GIL for a scope. CPython before 3.14 ends a daemon thread that takes the GIL while the interpreter ends
// by `pthread_exit`, which unwinds its stack with glibc, and functions that must not throw turn this into an abort.
// Here the unwinding is caught before it reaches one, and the thread waits for the end of the process.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace eq {

class ReleaseGil {
public:
    ReleaseGil() : state_(PyEval_SaveThread()) {}
    ~ReleaseGil() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {  // must not be left: glibc aborts if the unwinding does not continue
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }
    ReleaseGil(const ReleaseGil &) = delete;
    ReleaseGil &operator=(const ReleaseGil &) = delete;

private:
    PyThreadState *const state_;
};

}  // namespace eq

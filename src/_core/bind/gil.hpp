// Releases the GIL for a scope. If a thread takes the GIL while the interpreter shuts down, CPython before 3.14 ends
// the thread by unwinding its stack, and C++ functions that must not throw turn this into an abort. Here such a thread
// waits for the end of the process instead. `begin_exit`, called by Python's atexit, first waits for the threads that
// were already taking the GIL; only daemon threads are left by then.
#pragma once
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace eq {

class ReleaseGil {
public:
    ReleaseGil() : state_(PyEval_SaveThread()) {}
    ~ReleaseGil() {
        taking.fetch_add(1);
        if (ending.load() && std::this_thread::get_id() != ender) {
            taking.fetch_sub(1);
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
        PyEval_RestoreThread(state_);
        taking.fetch_sub(1);
    }
    ReleaseGil(const ReleaseGil &) = delete;
    ReleaseGil &operator=(const ReleaseGil &) = delete;

    // After a fork the child has only the thread that forked, which has the GIL.
    static void prepare() {
        pthread_atfork(nullptr, nullptr, [] { taking.store(0); });
    }

    // Called with the GIL, by the thread that ends the interpreter.
    static void begin_exit() {
        ender = std::this_thread::get_id();
        ending.store(true);
        PyThreadState *const state = PyEval_SaveThread();
        while (taking.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        PyEval_RestoreThread(state);
    }

private:
    PyThreadState *const state_;
    inline static std::atomic<int> taking{0};
    inline static std::atomic<bool> ending{false};
    inline static std::thread::id ender{};
};

}  // namespace eq

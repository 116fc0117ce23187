// Parallel loops. The threads belong to a pool that the whole process shares (pool.cpp). A loop never fails for lack of
// threads: the caller works too, and alone if no other can be started.
#pragma once
#include <atomic>
#include <cstdint>

namespace eq {

// Calls run(context, first, last, slot) for chunks of the items 0 .. n - 1. Threads at work at the same time have
// different slots.
struct Loop {
    void (*run)(void *context, std::int64_t first, std::int64_t last, int slot);
    void *context;
    std::int64_t n, chunk;
};

// The number of slots for a request of `threads`: at least 1, and not many more than the machine has processors.
int slots(int threads);

// Runs a loop on up to slots(threads) threads. The first exception thrown by a chunk ends the loop and is rethrown.
void run_loop(const Loop &loop, int threads);

// The seconds that callers in this process have spent in loops of more than one chunk. The rest of their time is serial.
double loop_seconds();

// Calls body(first, last, slot) for chunks of the items 0 .. n - 1, on several threads and in any order.
template <class Body> void parallel_for(std::int64_t n, std::int64_t chunk, int threads, const Body &body) {
    const auto run = [](void *context, std::int64_t first, std::int64_t last, int slot) {
        (*static_cast<const Body *>(context))(first, last, slot);
    };
    run_loop({run, const_cast<Body *>(&body), n, chunk}, threads);
}

// A loop whose chunks are done by threads that wait for others at the end of another loop. It applies to the loops that
// the constructing thread starts while the object exists; finish() does the chunks that are left.
class Meanwhile {
public:
    explicit Meanwhile(const Loop &loop);
    ~Meanwhile();
    Meanwhile(const Meanwhile &) = delete;
    Meanwhile &operator=(const Meanwhile &) = delete;

    void finish(int threads);
    bool do_chunk();  // returns false if none is left

private:
    const Loop loop_;
    Meanwhile *const outer_;
    std::atomic<std::int64_t> next_{0};
};

}  // namespace eq

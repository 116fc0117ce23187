// A pool of threads that several callers share. Threads are started when a loop first wants them, wait for the next
// loop, and end with the process.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "threads/parallel.hpp"

namespace eq {
namespace {

// A thread that waits tests a flag for about a millisecond before it sleeps, because waking it takes longer than the
// pause between two loops. It sleeps at once if another thread ran when it offered its processor.
constexpr int SPINS = 160, TESTS = 256;
constexpr std::chrono::microseconds OTHERS_RAN{20};

// A loop at work, on the stack of its caller. Members that are not atomic are guarded by the mutex of the pool.
struct Job {
    const Loop &loop;
    const int slots;
    int joined = 1;                    // slots taken; the caller has slot 0
    std::atomic<int> helpers{0};       // threads of the pool that work on it now
    std::atomic<std::int64_t> next{0};  // the first item that nobody has taken
    std::exception_ptr error;
    Job *after = nullptr;

    Job(const Loop &loop_, int slots_) : loop(loop_), slots(slots_) {}
    bool open() const { return joined < slots && next.load(std::memory_order_relaxed) < loop.n; }
};

template <class Condition> bool spin(Condition holds) {
    for (int s = 0; s < SPINS; ++s) {
        for (int t = 0; t < TESTS; ++t) {
            if (holds()) return true;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        const auto offered = std::chrono::steady_clock::now();
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() - offered > OTHERS_RAN) break;
    }
    return holds();
}

class Pool {
public:
    void run(const Loop &loop, int slots) {
        Job job(loop, slots);
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            job.after = jobs_;
            jobs_ = &job;
            wanted_ += slots - 1;
            start_threads();
            added_.fetch_add(1);
        }
        work_.notify_all();
        work_on(job, 0);
        {
            const std::lock_guard<std::mutex> guard(mutex_);  // from here on, nobody joins
            Job **place = &jobs_;
            while (*place != &job) place = &(*place)->after;
            *place = job.after;
            wanted_ -= slots - 1;
        }
        spin([&] { return job.helpers.load() == 0; });
        std::unique_lock<std::mutex> lock(mutex_);  // also waits for the last helper to leave the mutex
        done_.wait(lock, [&] { return job.helpers.load() == 0; });
        if (job.error) std::rethrow_exception(job.error);
    }

private:
    std::mutex mutex_;
    std::condition_variable work_, done_;
    std::atomic<std::uint64_t> added_{0};  // jobs added so far
    Job *jobs_ = nullptr;
    int threads_ = 0, wanted_ = 0;

    // As many threads as the loops at work can use; fewer if the system refuses to start them.
    void start_threads() {
        while (threads_ < wanted_) {
            try {
                std::thread([this] { serve(); }).detach();
            } catch (...) {  // std::system_error: no memory for its stack, or too many threads
                return;
            }
            ++threads_;
        }
    }

    void work_on(Job &job, int slot) {
        const Loop &loop = job.loop;
        try {
            for (;;) {
                const std::int64_t first = job.next.fetch_add(loop.chunk);
                if (first >= loop.n) return;
                loop.run(loop.context, first, std::min(first + loop.chunk, loop.n), slot);
            }
        } catch (...) {
            job.next.store(loop.n);
            const std::lock_guard<std::mutex> guard(mutex_);
            if (!job.error) job.error = std::current_exception();
        }
    }

    [[noreturn]] void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            Job *job = jobs_;
            while (job != nullptr && !job->open()) job = job->after;
            if (job == nullptr) {
                const std::uint64_t seen = added_.load();
                lock.unlock();
                spin([&] { return added_.load() != seen; });
                lock.lock();
                work_.wait(lock, [&] { return added_.load() != seen; });
                continue;
            }
            const int slot = job->joined++;
            job->helpers.fetch_add(1);
            lock.unlock();
            work_on(*job, slot);
            lock.lock();
            if (job->helpers.fetch_sub(1) == 1) done_.notify_all();
        }
    }
};

// Never destroyed: at the end of the process, threads may still wait in it.
alignas(Pool) unsigned char memory[sizeof(Pool)];

// After a fork the child has none of the threads, and perhaps a locked mutex: it gets a new pool.
Pool *make_pool() {
    pthread_atfork(nullptr, nullptr, [] { new (memory) Pool; });
    return new (memory) Pool;
}

Pool &pool() {
    static Pool *const shared = make_pool();
    return *shared;
}

}  // namespace

int slots(int threads) {
    static const int most = std::max(64, int(std::thread::hardware_concurrency()));
    return std::clamp(threads, 1, most);
}

void run_loop(const Loop &loop, int threads) {
    if (loop.n <= 0) return;
    const std::int64_t chunks = (loop.n - 1) / loop.chunk + 1;
    const int used = int(std::min<std::int64_t>(chunks, slots(threads)));
    if (used == 1) loop.run(loop.context, 0, loop.n, 0);
    else pool().run(loop, used);
}

}  // namespace eq

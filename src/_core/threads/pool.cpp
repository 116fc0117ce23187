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

// A thread that waits tests a flag for a while before it sleeps: loops follow each other closely, and with the pause
// between two iterations of MDS on 1,797 points, 0.5 ms, sleep costs a tenth of its speed on two cores. It sleeps earlier
// if, when it offers its processor, another thread runs on it for longer than the offer itself takes.
constexpr std::chrono::microseconds WAIT{1000}, OFFER{20};
constexpr int TESTS = 256;  // of the flag between two offers

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

template <class Condition> void spin(Condition holds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + WAIT;
    for (;;) {
        for (int t = 0; t < TESTS; ++t) {
            if (holds()) return;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        const auto offered = Clock::now();
        std::this_thread::yield();
        const auto now = Clock::now();
        if (now - offered > OFFER || now > end) return;
    }
}

class Pool {
public:
    void run(const Loop &loop, int slots) {
        Job job(loop, slots);
        int asleep;  // threads to wake; others see the change of `added_`
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            job.after = jobs_;
            jobs_ = &job;
            wanted_ += slots - 1;
            latest_ = slots - 1;
            asleep = latest_ - spinning_;
            start_threads();
            added_.fetch_add(1);
        }
        for (; asleep > 0; --asleep) work_.notify_one();
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
    int latest_ = 0, spinning_ = 0;  // threads wanted by the latest job; threads that test `added_`, at most as many

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
                const auto added = [&] { return added_.load() != seen; };
                if (spinning_ < latest_) {
                    ++spinning_;
                    lock.unlock();
                    spin(added);
                    lock.lock();
                    --spinning_;
                }
                work_.wait(lock, added);
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

std::atomic<std::int64_t> in_loops{0};  // nanoseconds

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
    const auto start = std::chrono::steady_clock::now();
    if (used == 1) loop.run(loop.context, 0, loop.n, 0);
    else pool().run(loop, used);
    if (chunks > 1) in_loops += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

double loop_seconds() { return 1e-9 * double(in_loops.load()); }

}  // namespace eq

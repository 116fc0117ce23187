// A pool of threads that several callers share. Threads are started when a loop first wants them, wait for the next
// loop, and end with the process. A loop is published in one of a few places, and threads join and leave it by atomic
// operations on the state of its place; the mutex is only for threads that sleep.
#ifndef _WIN32
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <thread>

#include "threads/crowding.hpp"
#include "threads/parallel.hpp"

namespace eq {
namespace {

using Clock = std::chrono::steady_clock;

// A thread that waits tests a flag for a while before it sleeps: loops follow each other closely, and with the pause
// between two iterations of MDS on 1,797 points, 0.5 ms, sleep costs a tenth of its speed on two cores. It sleeps earlier
// if, when it offers its processor, another thread runs on it for longer than the offer itself takes.
constexpr std::chrono::microseconds WAIT{1000}, OFFER{20};
constexpr int TESTS = 256;        // of the flag between two offers
constexpr int PLACES = 16;        // loops that can share the pool at a time; chosen
constexpr int RANGES = 64;        // ranges of chunks in a loop, at most; chosen
constexpr std::size_t LINE = 64;  // bytes of a cache line: what different threads write must not share one

// Consecutive chunks of a loop. Each thread begins with its own range, the same one in every loop, because the data are
// then often in its cache, and helps with the other ranges afterwards.
struct alignas(LINE) Range {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
};

// The innermost loop for idle time of a caller.
thread_local Meanwhile *meanwhile = nullptr;

// A loop at work, on the stack of its caller.
class Job {
public:
    std::int64_t done_by_caller = 0;  // chunks
    Clock::time_point caller_was_done;
    std::exception_ptr error;

    Job(const Loop &loop, std::int64_t chunks, int slots, Meanwhile *idle)
        : loop_(loop), chunks_(chunks), count_(chunks < slots ? 1 : std::min(slots, RANGES)), idle_(idle) {
        for (int r = 0; r < count_; ++r) {
            ranges_[r].next.store(chunks * r / count_, std::memory_order_relaxed);
            ranges_[r].end = chunks * (r + 1) / count_;
        }
    }

    // Works on chunks until none is left, from the range of number `home` on.
    void work(int slot, int home) {
        std::int64_t done = 0;
        try {
            for (int r = 0; r < count_; ++r) done += work_on(ranges_[(home + r) % count_], slot);
            if (slot == 0) caller_was_done = Clock::now();
            if (idle_ != nullptr) {
                finished_.fetch_add(done);
                while (finished_.load() < chunks_ && !failed_.load() && idle_->do_chunk()) {}
            }
        } catch (...) {
            const std::lock_guard<std::mutex> guard(mutex_);
            failed_.store(true);
            if (!error) error = std::current_exception();
        }
        if (slot == 0) done_by_caller = done;
    }

private:
    const Loop &loop_;
    const std::int64_t chunks_;
    const int count_;  // of the ranges
    Meanwhile *const idle_;
    std::atomic<bool> failed_{false};
    std::mutex mutex_;  // of the error
    alignas(LINE) std::atomic<std::int64_t> finished_{0};  // chunks, if there is a loop for idle time
    Range ranges_[RANGES];

    std::int64_t work_on(Range &range, int slot) {
        std::int64_t done = 0;
        while (range.next.load(std::memory_order_relaxed) < range.end && !failed_.load(std::memory_order_relaxed)) {
            const std::int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
            if (chunk >= range.end) break;
            const std::int64_t first = chunk * loop_.chunk;
            loop_.run(loop_.context, first, std::min(first + loop_.chunk, loop_.n), slot);
            ++done;
        }
        return done;
    }
};

// Where a job is published. The state has the number of free seats and of the threads of the pool that work on the job,
// and a number that differs between jobs, so that a thread cannot join another job than the one that it saw.
struct alignas(LINE) Place {
    static constexpr std::uint64_t HELPER = 1, SEAT = 1 << 16, JOB = std::uint64_t(1) << 32;
    std::atomic<std::uint64_t> state{0};
    Job *job = nullptr;
    std::atomic<bool> taken{false};

    bool take() { return !taken.load(std::memory_order_relaxed) && !taken.exchange(true); }
    void open(Job &to, int seats) {
        job = &to;
        state.store((state.load() & ~(JOB - 1)) + JOB + std::uint64_t(seats) * SEAT);
    }
    void close() { state.fetch_and(~(JOB - SEAT)); }  // from here on, nobody joins

    // Takes a seat and returns its number, from 1, or 0 if none is free.
    int join() {
        std::uint64_t seen = state.load();
        for (;;) {
            const int seats = int((seen & (JOB - SEAT)) / SEAT);
            if (seats == 0 || state.compare_exchange_weak(seen, seen - SEAT + HELPER)) return seats;
        }
    }
    bool is_left() const { return (state.load() & (SEAT - 1)) == 0; }
};

template <class Condition> void spin(Condition holds) {
    const auto end = Clock::now() + WAIT;
    for (;;) {
        for (int t = 0; t < TESTS; ++t) {
            if (holds()) return;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            __asm__ volatile("yield");
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
    void run(const Loop &loop, std::int64_t chunks, int slots) {
        Job job(loop, chunks, slots, meanwhile);
        Place *const place = find_place();
        if (place == nullptr) {  // too many loops at a time
            job.work(0, 0);
            if (job.error) std::rethrow_exception(job.error);
            return;
        }
        const int seats = slots - 1;
        place->open(job, seats);
        const int wanted = wanted_.fetch_add(seats) + seats;
        latest_.store(wanted);
        added_.fetch_add(1);
        wake(wanted);
        const auto start = Clock::now();
        job.work(0, 0);
        place->close();
        wait_for_helpers(*place);
        if (!job.error) {
            const auto end = job.caller_was_done;
            crowding.observe(slots, end - start, Clock::now() - end, job.done_by_caller);
        }
        wanted_.fetch_sub(seats);
        place->taken.store(false);
        if (job.error) std::rethrow_exception(job.error);
    }

    Crowding crowding;

private:
    Place places_[PLACES];
    alignas(LINE) std::atomic<std::uint64_t> added_{0};  // jobs added so far; threads that wait test it
    alignas(LINE) std::atomic<int> wanted_{0};           // seats of the jobs at work
    std::atomic<int> latest_{0};                         // wanted when the latest job was added
    std::atomic<int> awake_{0};                          // threads that do not sleep
    std::atomic<int> threads_{0}, waiting_{0};           // all threads; callers that sleep
    alignas(LINE) std::mutex mutex_;
    std::condition_variable work_, done_;

    Place *find_place() {
        for (Place &place : places_)
            if (place.take()) return &place;
        return nullptr;
    }

    // Starts or wakes threads until `wanted` are awake; fewer if the system refuses to start them.
    void wake(int wanted) {
        int missing = wanted - awake_.load();
        if (missing <= 0) return;
        const std::lock_guard<std::mutex> guard(mutex_);
        for (; missing > 0 && threads_.load() < wanted; --missing) {
            awake_.fetch_add(1);
            const int number = threads_.fetch_add(1) + 1;
            try {
                std::thread([this, number] { serve(number); }).detach();
            } catch (...) {  // std::system_error: no memory for its stack, or too many threads
                threads_.fetch_sub(1);
                awake_.fetch_sub(1);
                break;
            }
        }
        for (; missing > 0; --missing) work_.notify_one();
    }

    void wait_for_helpers(const Place &place) {
        const auto left = [&] { return place.is_left(); };
        if (left()) return;
        spin(left);
        if (left()) return;
        std::unique_lock<std::mutex> lock(mutex_);
        waiting_.fetch_add(1);
        done_.wait(lock, left);
        waiting_.fetch_sub(1);
    }

    [[noreturn]] void serve(int number) {
        for (;;) {
            const std::uint64_t seen = added_.load();
            bool worked = false;
            for (Place &place : places_)
                if (const int slot = place.join()) {
                    place.job->work(slot, number);
                    leave(place);
                    worked = true;
                }
            if (!worked) wait_for_work(seen);
        }
    }

    void leave(Place &place) {
        place.state.fetch_sub(Place::HELPER);
        if (waiting_.load() == 0) return;
        const std::lock_guard<std::mutex> guard(mutex_);
        done_.notify_all();
    }

    void wait_for_work(std::uint64_t seen) {
        const auto added = [&] { return added_.load() != seen; };
        int awake = awake_.load();
        while (awake > latest_.load() && !awake_.compare_exchange_weak(awake, awake - 1)) {}
        if (awake <= latest_.load()) {  // one of those that the next loop is likely to want
            spin(added);
            if (added()) return;
            awake_.fetch_sub(1);
        }
        std::unique_lock<std::mutex> lock(mutex_);
        work_.wait(lock, added);
        awake_.fetch_add(1);
    }
};

// Never destroyed: at the end of the process, threads may still wait in it.
alignas(Pool) unsigned char memory[sizeof(Pool)];

// After a fork the child has none of the threads, and perhaps a locked mutex: it gets a new pool. Windows has no fork.
Pool *make_pool() {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { new (memory) Pool; });
#endif
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
    int used = int(std::min<std::int64_t>(chunks, slots(threads)));
    const auto start = Clock::now();
    if (used > 1) used = pool().crowding.limit(used, start);
    if (used == 1) loop.run(loop.context, 0, loop.n, 0);
    else pool().run(loop, chunks, used);
    if (chunks > 1) in_loops += std::chrono::nanoseconds(Clock::now() - start).count();
}

Meanwhile::Meanwhile(const Loop &loop) : loop_(loop), outer_(meanwhile) { meanwhile = this; }
Meanwhile::~Meanwhile() { meanwhile = outer_; }

bool Meanwhile::do_chunk() {
    if (next_.load(std::memory_order_relaxed) >= loop_.n) return false;
    const std::int64_t first = next_.fetch_add(loop_.chunk, std::memory_order_relaxed);
    if (first >= loop_.n) return false;
    loop_.run(loop_.context, first, std::min(first + loop_.chunk, loop_.n), 0);
    return true;
}

void Meanwhile::finish(int threads) {
    meanwhile = outer_;
    parallel_for(slots(threads), 1, threads, [&](std::int64_t, std::int64_t, int) {
        while (do_chunk()) {}
    });
}

double loop_seconds() { return 1e-9 * double(in_loops.load()); }

}  // namespace eq

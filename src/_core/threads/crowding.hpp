// Notices that other processes use the processors, and limits the threads of loops then.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace eq {

// On a busy machine a thread that has taken a chunk can lose its processor for some milliseconds, and all other threads
// of the loop wait for this chunk. If this happens in several loops in a short time, later loops use half as many
// threads, at last one; after a while without it, twice as many. Results do not depend on it. Constants are chosen.
class Crowding {
    using Clock = std::chrono::steady_clock;
    using Duration = Clock::duration;

public:
    // The number of threads for a loop that wants `slots` of them and begins now.
    int limit(int slots, Clock::time_point now) {
        const int most = most_.load(std::memory_order_relaxed);
        if (most >= slots) return slots;
        if (now.time_since_epoch().count() < next_try_.load(std::memory_order_relaxed)) return most;
        const std::lock_guard<std::mutex> guard(mutex_);
        if (most_.load() != most || now.time_since_epoch().count() < next_try_.load()) return std::min(most_.load(), slots);
        most_.store(2 * most);
        raised_ = now;
        next_try_.store((now + FIRST).time_since_epoch().count());
        return std::min(2 * most, slots);
    }

    // Takes note of a loop on `slots` threads: how long the caller worked, on how many chunks, and how long it then
    // waited for the others. A chunk that is at work when the last one begins takes about as long as the others.
    void observe(int slots, Duration worked, Duration waited, std::int64_t chunks) {
        if (waited < LATE || chunks == 0 || waited < 4 * (worked / chunks)) return;
        const std::lock_guard<std::mutex> guard(mutex_);
        const Clock::time_point now = Clock::now();
        count_ = now - last_ < RECENT ? count_ + 1 : 1;
        last_ = now;
        if (count_ < SEVERAL || slots > most_.load()) return;  // the loop may have begun before the last change
        count_ = 0;
        most_.store(std::max(1, slots / 2));
        pause_ = now - raised_ < 2 * FIRST ? std::min<Duration>(2 * pause_, LONGEST) : FIRST;
        next_try_.store((now + pause_).time_since_epoch().count());
    }

private:
    static constexpr std::chrono::microseconds LATE{500};
    static constexpr std::chrono::milliseconds RECENT{20}, FIRST{50}, LONGEST{800};
    static constexpr int SEVERAL = 3, ALL = 1 << 20;
    std::atomic<int> most_{ALL};
    std::atomic<Duration::rep> next_try_{0};
    std::mutex mutex_;  // of the following, and of changes of the limit
    int count_ = 0;     // late loops, each soon after the one before
    Clock::time_point last_{}, raised_{};
    Duration pause_ = FIRST;
};

}  // namespace eq

// Memory of the numerical code: arrays, and objects with one copy per thread. Both are compiled per
// instruction set: std::vector would emit symbols that the linker shares between instruction sets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "threads/parallel.hpp"

namespace eq {
namespace EQ_ISA {

struct Uninitialized {};
constexpr Uninitialized UNINITIALIZED;

template <class T> struct Buffer {
    T *data;
    explicit Buffer(std::int64_t size) : data(new T[std::size_t(size)]()) {}
    Buffer(std::int64_t size, Uninitialized) : data(new T[std::size_t(size)]) {}
    ~Buffer() { delete[] data; }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    T &operator[](std::int64_t i) { return data[i]; }
    const T &operator[](std::int64_t i) const { return data[i]; }
};

// One T for each slot of a parallel loop on threads() threads, constructed before it: nothing is allocated inside loops.
template <class T> class PerThread {
public:
    template <class... Arguments> explicit PerThread(int threads, const Arguments &...arguments) {
        const int wanted = slots(threads);
        slots_ =
            static_cast<Slot *>(::operator new(std::size_t(wanted) * sizeof(Slot), std::align_val_t(alignof(Slot))));
        try {
            for (; count_ < wanted; ++count_) new (slots_ + count_) Slot{T(arguments...)};
        } catch (...) {
            clear();
            throw;
        }
    }
    ~PerThread() { clear(); }
    PerThread(const PerThread &) = delete;
    PerThread &operator=(const PerThread &) = delete;

    int threads() const { return count_; }
    T &operator[](int slot) { return slots_[slot].item; }

private:
    struct alignas(alignof(T) > 64 ? alignof(T) : 64) Slot {  // threads share no cache line
        T item;
    };
    Slot *slots_ = nullptr;
    int count_ = 0;

    void clear() {
        while (count_ > 0) slots_[--count_].~Slot();
        ::operator delete(static_cast<void *>(slots_), std::align_val_t(alignof(Slot)));
    }
};

}  // namespace EQ_ISA
}  // namespace eq

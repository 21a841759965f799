// A C++ program to be traced that throws through the traced function. Commands as in victim.c:
//
//   throw N     N calls of thrower(), every odd one throws, two frames deeper
//   mixed T N   the same in T threads at once
//   leave US    leaves a call of thrower() by an exception and calls nothing more for US microseconds
//
// Answers "done N", N being the exceptions caught.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> caught{0};

struct guard {
    std::string held;
    explicit guard(long i) : held(std::to_string(i)) {}
    ~guard() { __asm__ volatile("" ::: "memory"); }
};

__attribute__((noinline)) static void deeper(long i)
{
    guard g(i);
    if (i % 2)
        throw std::runtime_error(g.held);
    __asm__ volatile("" ::: "memory");
}

// Its name in the source is not the one that the linker knows.
namespace app
{
template <class Key, class Value> struct cache {
    __attribute__((noinline)) static long lookup(long key)
    {
        __asm__ volatile("" ::: "memory");
        return key;
    }
};
} // namespace app

extern "C" __attribute__((noinline)) long thrower(long i, long n)
{
    guard g(i);
    deeper(i);
    __asm__ volatile("" ::: "memory");
    return app::cache<std::string, std::vector<int>>::lookup(i) + n;
}

static void run(long n)
{
    for (long i = 0; i < n; i++) {
        try {
            thrower(i, n);
        } catch (const std::runtime_error &e) {
            if (std::atol(e.what()) != i)
                std::abort();
            caught++;
        }
    }
}

int main()
{
    char line[256];
    std::printf("ready %p\n", reinterpret_cast<void *>(thrower));
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
        long a, b;
        if (std::sscanf(line, "throw %ld", &a) == 1) {
            run(a);
        } else if (std::sscanf(line, "leave %ld", &a) == 1) {
            run(2);
            std::this_thread::sleep_for(std::chrono::microseconds(a));
        } else if (std::sscanf(line, "mixed %ld %ld", &a, &b) == 2) {
            std::vector<std::thread> all;
            for (long i = 0; i < a; i++)
                all.emplace_back(run, b);
            for (auto &t : all)
                t.join();
        }
        std::printf("done %ld\n", caught.load());
        std::fflush(stdout);
    }
}

// What the program needs around the kernel: memory with inputs in it, a clock, and checksums.

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace probe {

// in: the kernel only reads it. out: it writes before it reads. inout: it is put back before every call.
enum class Use { in, out, inout };

// Numbers that look random and are the same everywhere: the finaliser of splitmix64.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T, typename = void>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<T, std::void_t<decltype(std::declval<T>().imag())>> : std::true_type {};

// 24 random bits as a float from -1 (included) to 1 (not): every one of them is exact.
inline float fraction(uint64_t random) {
  return static_cast<float>(random >> 40) / 8388608.0f - 1.0f;
}

template <typename T>
T value(uint64_t random, int64_t low, int64_t high) {
  if constexpr (std::is_same_v<T, bool>) {
    return (random & 1) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(low + static_cast<int64_t>(random % (static_cast<uint64_t>(high - low) + 1)));
  } else if constexpr (IsComplex<T>::value) {
    return T(fraction(random), fraction(mix(random)));
  } else {
    return static_cast<T>(fraction(random));
  }
}

template <typename T>
double number(T element) {
  if constexpr (IsComplex<T>::value) {
    return static_cast<double>(element.real()) + static_cast<double>(element.imag());
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(element);
  } else {
    return static_cast<double>(static_cast<float>(element));  // Half, BFloat16 and the 8-bit floats
  }
}

struct Memory {
  std::string name;
  Use use;
  std::function<void()> fill;
  std::function<void()> put_back;
  std::function<void()> print;
};

class Program {
 public:
  // threads: as the kernel's text says, or 0 where it leaves them to OpenMP.
  Program(const char* kernel, int threads, int argc, char** argv)
      : kernel_(kernel), threads_(threads > 0 ? threads : omp_get_max_threads()), fixed_(threads > 0) {
    calls_ = number_of(argc, argv, 1, 0);
    seed_ = static_cast<uint64_t>(number_of(argc, argv, 2, 0));
  }

  // Memory for `elements` of a T, aligned as torch aligns tensors; integers lie from low to high.
  template <typename T>
  T* memory(const char* name, const char* type, size_t elements, Use use, int64_t low = 0, int64_t high = 0) {
    size_t bytes = (std::max<size_t>(elements, 1) * sizeof(T) + 63) / 64 * 64;
    T* data = static_cast<T*>(std::aligned_alloc(64, bytes));
    if (data == nullptr) {
      std::fprintf(stderr, "%s: no memory for %zu bytes\n", name, bytes);
      std::exit(2);
    }
    auto first = std::make_shared<std::vector<char>>();
    uint64_t start = mix(seed_ + memories_.size());
    Memory made{name, use, nullptr, nullptr, nullptr};
    made.fill = [=] {
      for (size_t at = 0; at < elements; ++at) data[at] = value<T>(mix(start + at), low, high);
      const char* from = reinterpret_cast<const char*>(data);
      if (use == Use::inout) first->assign(from, from + elements * sizeof(T));
    };
    made.put_back = [=] { std::memcpy(static_cast<void*>(data), first->data(), first->size()); };
    made.print = [=] { checksum(name, type, data, elements); };
    memories_.push_back(made);
    return data;
  }

  // Time `call`, then run it once on fresh memory and print a checksum of all that it writes.
  template <typename Call>
  int run(Call call) {
    try {
      fill();
      call();  // starts the threads and touches the memory
      std::vector<double> samples = times(call);
      fill();
      call();
      report(samples);
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s raised: %s\n", kernel_, error.what());
      return 1;
    }
  }

 private:
  const char* kernel_;
  int threads_;
  bool fixed_;
  long long calls_;
  uint64_t seed_;
  long long called_ = 0;
  std::vector<Memory> memories_;

  static long long number_of(int argc, char** argv, int at, long long otherwise) {
    if (argc <= at) return otherwise;
    char* end = nullptr;
    long long found = std::strtoll(argv[at], &end, 10);
    if (*end == '\0' && end != argv[at] && found >= 0 && argc <= 3) return found;
    std::fprintf(stderr, "usage: %s [CALLS [SEED]]; without CALLS it runs for half a second\n", argv[0]);
    std::exit(2);
  }

  void fill() {
    for (Memory& memory : memories_) memory.fill();
  }

  bool put_back() {
    bool any = false;
    for (Memory& memory : memories_) {
      if (memory.use != Use::inout) continue;
      memory.put_back();
      any = true;
    }
    return any;
  }

  template <typename Call>
  double seconds(Call call, long long count) {
    auto start = std::chrono::steady_clock::now();
    for (long long at = 0; at < count; ++at) call();
    auto end = std::chrono::steady_clock::now();
    called_ += count;
    return std::chrono::duration<double>(end - start).count() / static_cast<double>(count);
  }

  // Seconds a call, each the mean of enough calls for the clock to tell (20 us), of one where memory is put back.
  template <typename Call>
  std::vector<double> times(Call call) {
    bool alone = put_back();
    double one = std::max(seconds(call, 1), 1e-9);
    called_ = 0;
    long long together = alone ? 1 : std::clamp<long long>(static_cast<long long>(2e-5 / one), 1, 1000);
    long long wanted = calls_ > 0 ? calls_ : std::clamp<long long>(static_cast<long long>(0.5 / one), 5, 1000000);
    std::vector<double> samples;
    while (called_ < wanted) {
      if (alone) put_back();
      samples.push_back(seconds(call, std::min(together, wanted - called_)));
    }
    std::sort(samples.begin(), samples.end());
    return samples;
  }

  void report(const std::vector<double>& samples) {
    std::printf("%s: median %.1f ns a call, fastest %.1f ns, %lld calls\n", kernel_,
                samples[samples.size() / 2] * 1e9, samples[0] * 1e9, called_);
    cpu_set_t may;
    if (threads_ > 1 && sched_getaffinity(0, sizeof(may), &may) == 0) {
      int processors = CPU_COUNT(&may);
      std::printf("threads: %d%s, processors: %d%s\n", threads_, fixed_ ? " (fixed in the kernel)" : "", processors,
                  processors < threads_ ? " (threads wait for each other: the time is not the kernel's)" : "");
    }
    for (Memory& memory : memories_) {
      if (memory.use != Use::in) memory.print();
    }
  }

  template <typename T>
  static void checksum(const char* name, const char* type, const T* data, size_t elements) {
    constexpr size_t unit = std::min<size_t>(sizeof(T), 8);
    const char* bytes = reinterpret_cast<const char*>(data);
    uint64_t bits = 0;
    for (size_t at = 0; at < elements * sizeof(T) / unit; ++at) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at * unit, unit);
      bits += mix(mix(at) ^ word);
    }
    double sum = 0;
    size_t odd = 0;
    for (size_t at = 0; at < elements; ++at) {
      double element = number(data[at]);
      std::isfinite(element) ? sum += element : odd += 1;
    }
    std::printf("%s: %s[%zu] bits %016llx sum %.17g, %zu not finite\n", name, type, elements,
                static_cast<unsigned long long>(bits), sum, odd);
  }
};

}  // namespace probe

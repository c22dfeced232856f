// A scanner of plain scalar lines: JSON lines in, columns by series out.
//
// It takes a line only when there is no doubt what it means: one object of known fields of the expected JSON types, and
// of other fields with simple values. A value may be NaN, Infinity or -Infinity, as Python writes it. Every other line is "odd": its place is returned, and the slow path in Python
// decides. Nothing is checked here that Python checks per series.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using std::string_view;

constexpr std::int64_t NO_TIMESTAMP = std::numeric_limits<std::int64_t>::min();
constexpr Py_ssize_t LONG_BODY = 1 << 16;  // other threads may run while a longer one is scanned

// What the points of a series have in common; the views are of the body, inside the quotes.
struct Key {
    string_view task, metric, variant, worker, label;
    bool has_label = false, model_event = false, allow_locked = false;
    bool operator==(const Key&) const = default;
};

struct KeyHash {
    std::size_t operator()(const Key& key) const {
        std::size_t all = key.has_label * 4 + key.model_event * 2 + key.allow_locked;
        for (string_view name : {key.task, key.metric, key.variant, key.worker, key.label}) {
            all = all * 31 + std::hash<string_view>()(name);
        }
        return all;
    }
};

struct Point {
    std::int64_t iter = 0, timestamp = NO_TIMESTAMP;
    double value = std::numeric_limits<double>::quiet_NaN();
};

struct OddLine {
    Py_ssize_t number, start, stop;
};

// One line, read from left to right. Every method returns whether what it expects is there.
class Line {
public:
    Line(const char* start, const char* stop, std::int64_t earliest, std::int64_t latest)
        : at_(start), stop_(stop), earliest_(earliest), latest_(latest) {}

    Key key;
    Point point;

    bool read() {
        if (!take('{')) return false;
        do {
            string_view name;
            if (!quoted(name, false) || !take(':') || !field(name)) return false;
        } while (take(','));
        return take('}') && blank() && (seen_ & TYPE);
    }

    // Whether there is nothing but white space up to the end.
    bool blank() {
        while (at_ < stop_ && is_space(*at_)) ++at_;
        return at_ == stop_;
    }

private:
    enum Seen : unsigned {
        TYPE = 1, TASK = 2, METRIC = 4, VARIANT = 8, WORKER = 16, ITER = 32, TIMESTAMP = 64, VALUE = 128,
        LABEL = 256, MODEL = 512, MODEL_EVENT = 1024, ALLOW_LOCKED = 2048
    };

    const char* at_;
    const char* stop_;
    std::int64_t earliest_, latest_;
    unsigned seen_ = 0;

    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

    bool take(char expected) {
        while (at_ < stop_ && is_space(*at_)) ++at_;
        if (at_ == stop_ || *at_ != expected) return false;
        ++at_;
        return true;
    }

    bool word(string_view expected) {
        if (string_view(at_, stop_ - at_).substr(0, expected.size()) != expected) return false;
        at_ += expected.size();
        return true;
    }

    bool once(Seen which) {
        bool first = !(seen_ & which);
        seen_ |= which;
        return first;
    }

    bool field(string_view name) {
        while (at_ < stop_ && is_space(*at_)) ++at_;
        switch (name.size()) {
        case 2:
            if (name == "ts") return false;  // the old name of timestamp
            break;
        case 4:
            if (name == "iter") return once(ITER) && integer(point.iter);
            if (name == "type") {
                string_view type;
                return once(TYPE) && quoted(type, false) && type == "training_stats_scalar";
            }
            if (name == "task") return once(TASK) && quoted(key.task, true);
            break;
        case 5:
            if (name == "value") return once(VALUE) && (word("null") || real(point.value));
            if (name == "model") return once(MODEL) && word("null");
            break;
        case 6:
            if (name == "metric") return once(METRIC) && quoted(key.metric, true);
            if (name == "worker") return once(WORKER) && quoted(key.worker, true);
            break;
        case 7:
            if (name == "variant") return once(VARIANT) && quoted(key.variant, true);
            break;
        case 9:
            if (name == "timestamp") return once(TIMESTAMP) && (word("null") || timestamp());
            break;
        case 11:
            if (name == "model_event") return once(MODEL_EVENT) && boolean(key.model_event);
            break;
        case 12:
            if (name == "allow_locked") return once(ALLOW_LOCKED) && boolean(key.allow_locked);
            if (name == "x_axis_label") {
                return once(LABEL) && (word("null") || (key.has_label = quoted(key.label, true)));
            }
            break;
        }
        return other();
    }

    // A value that nobody looks at.
    bool other() {
        if (at_ == stop_) return false;
        string_view ignored;
        switch (*at_) {
        case '"': return quoted(ignored, false);
        case 'n': return word("null");
        case 't': return word("true");
        case 'f': return word("false");
        default: return number(ignored);
        }
    }

    bool boolean(bool& out) {
        if (word("true")) return out = true;
        out = false;
        return word("false");
    }

    bool timestamp() { return integer(point.timestamp) && point.timestamp >= earliest_ && point.timestamp <= latest_; }

    bool integer(std::int64_t& out) {
        string_view text;
        if (!number(text)) return false;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
        return error == std::errc() && end == text.data() + text.size();
    }

    bool real(double& out) {
        const char* start = at_;
        string_view text;
        if (!number(text)) {
            at_ = start;
            return not_finite(out);
        }
        if (text == "-0") text = "0";  // as a whole number it has no sign
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
        return error == std::errc() && end == text.data() + text.size();
    }

    // NaN and infinities as Python writes them, which JSON does not have.
    bool not_finite(double& out) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        if (word("NaN")) {
            out = std::numeric_limits<double>::quiet_NaN();
        } else if (word("Infinity")) {
            out = infinity;
        } else if (word("-Infinity")) {
            out = -infinity;
        } else {
            return false;
        }
        return true;
    }

    // The text of a JSON number, of which `from_chars` would take more forms.
    bool number(string_view& out) {
        const char* start = at_;
        if (at_ < stop_ && *at_ == '-') ++at_;
        const char* first = at_;
        if (!digits() || (*first == '0' && at_ - first > 1)) return false;
        if (at_ < stop_ && *at_ == '.') {
            ++at_;
            if (!digits()) return false;
        }
        if (at_ < stop_ && (*at_ == 'e' || *at_ == 'E')) {
            ++at_;
            if (at_ < stop_ && (*at_ == '+' || *at_ == '-')) ++at_;
            if (!digits()) return false;
        }
        out = string_view(start, at_ - start);
        return true;
    }

    bool digits() {
        const char* start = at_;
        while (at_ < stop_ && is_digit(*at_)) ++at_;
        return at_ > start;
    }

    // A string without escapes and control characters. Only a name may have other than ASCII: it is decoded later.
    bool quoted(string_view& out, bool is_name) {
        if (!take('"')) return false;
        const char* start = at_;
        for (;;) {
            skip_plain();
            if (at_ == stop_) return false;
            auto c = static_cast<unsigned char>(*at_);
            if (c == '"') break;
            if (c < 0x20 || c == '\\' || (c >= 0x80 && !is_name)) return false;
            ++at_;
        }
        out = string_view(start, at_ - start);
        ++at_;
        return true;
    }

    // Go on to the next quote, backslash, control character or byte beyond ASCII, eight bytes at a time; near the end
    // of the line, or where bytes lie in another order, not quite so far.
    void skip_plain() {
        constexpr std::uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
        while (std::endian::native == std::endian::little && stop_ - at_ >= 8) {
            std::uint64_t bytes;
            std::memcpy(&bytes, at_, 8);
            std::uint64_t quote = bytes ^ (ones * '"'), backslash = bytes ^ (ones * '\\');
            std::uint64_t special = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
                                    ((bytes - ones * 0x20) & ~bytes) | bytes;
            if (special &= highs) {
                at_ += std::countr_zero(special) / 8;
                return;
            }
            at_ += 8;
        }
    }
};

// All lines of a body.
class Scan {
public:
    void run(string_view body, std::int64_t earliest, std::int64_t latest) {
        const char* start = body.data();
        const char* end = start + body.size();
        for (Py_ssize_t number = 1; start < end; ++number) {
            auto newline = static_cast<const char*>(std::memchr(start, '\n', end - start));
            const char* stop = newline ? newline : end;
            Line line(start, stop, earliest, latest);
            if (line.read()) {
                add(line.key, line.point);
            } else if (!Line(start, stop, 0, 0).blank()) {
                odd.push_back({number, start - body.data(), stop - body.data()});
            }
            start = stop + 1;
        }
    }

    std::vector<Key> keys;
    std::vector<Py_ssize_t> lengths;
    std::vector<OddLine> odd;

    std::size_t size() const { return points_.size(); }

    // The three columns, group after group, each in the order of its lines.
    void write(std::int64_t* iters, std::int64_t* timestamps, double* values) const {
        std::vector<std::size_t> next(lengths.size());
        for (std::size_t n = 1; n < next.size(); ++n) next[n] = next[n - 1] + lengths[n - 1];
        for (std::size_t n = 0; n < points_.size(); ++n) {
            std::size_t at = next[groups_[n]]++;
            iters[at] = points_[n].iter;
            timestamps[at] = points_[n].timestamp;
            values[at] = points_[n].value;
        }
    }

private:
    std::vector<Point> points_;
    std::vector<std::uint32_t> groups_;
    std::vector<std::uint32_t> follower_;  // the group that came after each group the last time
    std::unordered_map<Key, std::uint32_t, KeyHash> numbers_;

    void add(const Key& key, const Point& point) {
        std::uint32_t group = number_of(key);
        if (!groups_.empty()) follower_[groups_.back()] = group;
        ++lengths[group];
        groups_.push_back(group);
        points_.push_back(point);
    }

    // Series are mostly reported in the same order again and again.
    std::uint32_t number_of(const Key& key) {
        if (!groups_.empty()) {
            std::uint32_t likely = follower_[groups_.back()];
            if (keys[likely] == key) return likely;
        }
        auto [found, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(keys.size()));
        if (is_new) {
            keys.push_back(key);
            lengths.push_back(0);
            follower_.push_back(0);
        }
        return found->second;
    }
};

PyObject* text(string_view utf8) {
    return PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), nullptr);
}

PyObject* label(const Key& key) {
    if (key.has_label) return text(key.label);
    Py_INCREF(Py_None);
    return Py_None;
}

PyObject* as_tuple(const Key& key) {
    return Py_BuildValue("(NzNNNNNN)", text(key.task), nullptr, PyBool_FromLong(key.model_event),
                         PyBool_FromLong(key.allow_locked), text(key.metric), text(key.variant), text(key.worker),
                         label(key));
}

template <typename Items, typename Make>
PyObject* as_list(const Items& items, Make make) {
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(items.size()));
    for (std::size_t n = 0; list && n < items.size(); ++n) {
        PyObject* item = make(items[n]);
        if (!item) {
            Py_DECREF(list);
            return nullptr;
        }
        PyList_SetItem(list, static_cast<Py_ssize_t>(n), item);
    }
    return list;
}

PyObject* as_answer(const Scan& scan) {
    auto bytes = static_cast<Py_ssize_t>(scan.size() * 8);
    PyObject* iters = PyBytes_FromStringAndSize(nullptr, bytes);
    PyObject* timestamps = PyBytes_FromStringAndSize(nullptr, bytes);
    PyObject* values = PyBytes_FromStringAndSize(nullptr, bytes);
    if (iters && timestamps && values) {
        scan.write(reinterpret_cast<std::int64_t*>(PyBytes_AsString(iters)),
                   reinterpret_cast<std::int64_t*>(PyBytes_AsString(timestamps)),
                   reinterpret_cast<double*>(PyBytes_AsString(values)));
    }
    PyObject* keys = as_list(scan.keys, as_tuple);
    PyObject* lengths = as_list(scan.lengths, PyLong_FromSsize_t);
    PyObject* odd = as_list(scan.odd, [](const OddLine& line) {
        return Py_BuildValue("(nnn)", line.number, line.start, line.stop);
    });
    return Py_BuildValue("(NNNNNN)", keys, lengths, iters, timestamps, values, odd);
}

PyObject* scan(PyObject*, PyObject* args) {
    Py_buffer body;
    long long earliest, latest;
    if (!PyArg_ParseTuple(args, "y*LL", &body, &earliest, &latest)) return nullptr;
    PyObject* answer = nullptr;
    try {
        Scan scan;
        PyThreadState* others = body.len > LONG_BODY ? PyEval_SaveThread() : nullptr;
        bool enough_memory = true;
        try {
            scan.run(string_view(static_cast<const char*>(body.buf), body.len), earliest, latest);
        } catch (const std::bad_alloc&) {
            enough_memory = false;
        }
        if (others) PyEval_RestoreThread(others);
        answer = enough_memory ? as_answer(scan) : PyErr_NoMemory();
    } catch (const std::bad_alloc&) {
        answer = PyErr_NoMemory();
    }
    PyBuffer_Release(&body);
    return answer;
}

PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS,
     "scan(body, earliest, latest) -> (keys, lengths, iters, timestamps, values, odd)\n\n"
     "Keys are (task, None, model_event, allow_locked, metric, variant, worker, x_axis_label or None); the columns are\n"
     "the bytes of int64, int64 and float64 arrays, key after key; odd lines are (number from 1, start, stop). Raises\n"
     "UnicodeDecodeError for a name that is not UTF-8."},
    {nullptr, nullptr, 0, nullptr},
};

// To be raised when the answer changes: the server uses only a scanner of the format that it knows.
constexpr long FORMAT = 1;

int initialize(PyObject* self) { return PyModule_AddIntConstant(self, "FORMAT", FORMAT); }

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(initialize)}, {0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "apiserver_accelerator", nullptr, 0, methods, slots,
                      nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_apiserver_accelerator() { return PyModuleDef_Init(&module); }

// What the headers say, written as `shape.rs` writes types.

#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>

using std::string;

template <class T, class = void> struct is_complete : std::false_type {};
template <class T> struct is_complete<T, decltype(void(sizeof(T)))> : std::true_type {};

template <class T> struct Shape;
template <class T> string shape() {
    return Shape<std::remove_cv_t<T>>::text();
}

template <class T> struct Shape {
    static string text() {
        if constexpr (std::is_void_v<T>)
            return "void";
        else if constexpr (std::is_pointer_v<T>)
            return "*" + shape<std::remove_pointer_t<T>>();
        else if constexpr (std::is_enum_v<T>)
            return shape<std::underlying_type_t<T>>();
        else if constexpr (std::is_integral_v<T>)
            return (std::is_signed_v<T> ? "i" : "u") + std::to_string(8 * sizeof(T));
        else if constexpr (std::is_floating_point_v<T>)
            return "f" + std::to_string(8 * sizeof(T));
        else if constexpr (is_complete<T>::value)
            return "s" + std::to_string(sizeof(T));
        else
            return "?";
    }
};

template <class R, class... A> struct Shape<R(A...)> {
    static string text() {
        string list;
        ((list += (list.empty() ? "" : ",") + shape<A>()), ...);
        return "fn(" + list + ")->" + shape<R>();
    }
};

// Of a field, which `decltype` names as a reference.
template <class T> string shape_of_field() {
    return shape<std::remove_reference_t<T>>();
}

void say(int number, const string &what) {
    std::printf("%d %s\n", number, what.c_str());
}

void say(int number, long long value) {
    std::printf("%d %lld\n", number, value);
}

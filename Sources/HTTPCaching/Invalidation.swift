// Which answers make stored responses invalid (RFC 9111 section 4.4).

package import HTTPWire

extension Caching {
    /// Whether an answer with `status` to `method` invalidates what is stored under the target: a non-error answer (2xx or
    /// 3xx) to a method that is not known to be safe.
    package static func invalidates(method: Method, status: Int) -> Bool {
        !method.isSafe && (200..<400).contains(status)
    }
}

// The folders above a path.

package enum Ancestors {
    /// The folder of a path, as its text says; `/` for a name alone and for `/` itself.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// The path itself, or the nearest folder above it, of which `look` finds something; nil if it finds nothing up to
    /// `/`.
    package static func nearest<Found>(
        to path: String,
        _ look: (String) -> Found?
    ) -> (path: String, found: Found)? {
        var path = path
        while true {
            if let found = look(path) { return (path, found) }
            if path == "/" { return nil }
            path = parent(of: path)
        }
    }
}

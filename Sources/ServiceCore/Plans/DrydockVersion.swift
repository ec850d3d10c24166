// The version of this build.

/// The version that `drydock --version` prints, and that the library sends in `User-Agent`.
package enum DrydockVersion {
    package static let current = "0.2.0"
}

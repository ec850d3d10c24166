// The version of this build.

/// What `drydock --version` prints, and what the library calls itself in `User-Agent`.
package enum DrydockVersion {
    package static let current = "0.2.0"
}

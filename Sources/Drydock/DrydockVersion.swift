// The version of this build.

/// What `drydock --version` prints.
public enum DrydockVersion {
    public static let current = "0.2.0"
}

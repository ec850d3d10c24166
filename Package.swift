// swift-tools-version: 6.2
// The modules of Drydock, lowest first: a module imports modules above its own line in this file, never below it.

import PackageDescription

/// Continuous integration sets DRYDOCK_STRICT=1, so that a warning fails the build there and never on a user's newer compiler.
let strict: [SwiftSetting] =
    Context.environment["DRYDOCK_STRICT"] == "1" ? [.treatAllWarnings(as: .error)] : []

let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + strict + (Context.environment["DRYDOCK_SANITIZED"] == nil ? [] : [.define("DRYDOCK_SANITIZED")])

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(
    _ name: String,
    _ dependencies: [Target.Dependency],
    exclude: [String] = [],
    resources: [Resource] = []
) -> Target {
    .testTarget(
        name: name,
        dependencies: dependencies + ["TestSupport"],
        exclude: exclude,
        resources: resources,
        swiftSettings: settings
    )
}

/// A program of the documentation, which the tests run.
func example(_ name: String, _ folder: String, _ dependencies: [Target.Dependency] = ["Drydock"]) -> Target {
    .executableTarget(
        name: name,
        dependencies: dependencies,
        path: "Tests/Examples/\(folder)",
        swiftSettings: settings
    )
}

let package = Package(
    name: "drydock",
    products: [
        .library(name: "Drydock", targets: ["Drydock"]),
        .library(name: "DrydockServices", targets: ["DrydockServices"]),
        .library(name: "DrydockTesting", targets: ["DrydockTesting"]),
        .library(name: "DrydockLifecycle", targets: ["DrydockLifecycle"]),
        .executable(name: "drydock", targets: ["DrydockCommand"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // C modules: each is imported by exactly one module.
        .systemLibrary(name: "CLibevent", pkgConfig: "libevent_core", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CLibcurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLibcrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibssl", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibyaml", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CPCRE2", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CLinux"),
        .systemLibrary(name: "CProcessor"),
        .target(
            name: "CCodings",
            linkerSettings: [.linkedLibrary("z"), .linkedLibrary("brotlidec")]
        ),

        module("EventLoop", ["CLibevent", "CLinux"]),
        module("Files", ["EventLoop"]),
        module("Policies"),
        module("TLS", ["CLibssl", "EventLoop"]),
        module("HTTPWire"),
        module("YAML", ["CLibyaml"]),
        module("HTTPCaching", ["CLibcrypto", "HTTPWire", "Policies"]),
        module("Upstream", ["CLibcurl", "EventLoop", "Files", "HTTPWire", "TLS"]),
        module("SQLite", ["CSQLite"]),
        module(
            "CacheStore",
            ["CProcessor", "EventLoop", "Files", "HTTPWire", "HTTPCaching", "Policies"]
        ),
        module("DiskStore", ["CacheStore", "EventLoop", "Files", "HTTPCaching", "SQLite"]),
        module("Trees", ["HTTPWire", "Policies"]),
        module("Content", ["CCodings", "HTTPWire", "Policies", "Trees"]),
        module("Mapping", ["HTTPWire", "Trees"]),
        module("Matching", ["CPCRE2", "Content", "HTTPWire", "Trees"]),
        module("Contracts", ["HTTPWire", "Matching", "Trees", "YAML"]),
        module("Interchange", ["Content", "Contracts", "HTTPWire", "Matching", "Trees"]),
        module(
            "DownloadCore",
            [
                "Content", "EventLoop", "HTTPWire", "HTTPCaching", "Policies", "Upstream", "CacheStore",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        module("DemoMode", ["Content", "EventLoop", "HTTPWire", "Matching", "Policies", "Trees"]),
        module(
            "ServiceCore",
            [
                "Content", "EventLoop", "Files", "HTTPWire", "HTTPCaching", "Mapping", "Matching", "Policies",
                "Trees", "Upstream",
                "CacheStore", "DiskStore", "DownloadCore", "DemoMode",
            ]
        ),
        module(
            "Configuration",
            [
                "YAML", "EventLoop", "Files", "HTTPCaching", "Mapping", "Matching", "Policies", "TLS", "Upstream",
                "Content", "DemoMode", "Contracts", "Trees",
            ]
        ),
        module(
            "ProxyServer",
            [
                "EventLoop", "HTTPWire", "HTTPCaching", "Matching", "Policies", "TLS", "Upstream", "CacheStore",
                "Content", "DownloadCore", "ServiceCore", "DemoMode", "Trees",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        module(
            "Plans",
            [
                "EventLoop", "HTTPWire", "HTTPCaching", "Mapping", "Matching", "Policies", "Upstream", "CacheStore",
                "Content", "DownloadCore", "ServiceCore", "DemoMode", "Contracts", "Interchange", "Trees",
                "Configuration", "ProxyServer",
            ]
        ),
        module(
            "DrydockDaemon",
            [
                "EventLoop", "Files", "HTTPWire", "HTTPCaching", "Matching", "Policies", "Upstream", "CacheStore",
                "DemoMode", "DiskStore", "DownloadCore", "ServiceCore", "ProxyServer", "Configuration", "Plans", "TLS",
                "Trees",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .executableTarget(
            name: "DrydockCommand",
            dependencies: [
                "EventLoop", "HTTPWire", "Policies", "DownloadCore", "ServiceCore", "DrydockDaemon", "Configuration",
                "Contracts", "Interchange", "Content", "DemoMode", "Matching", "Plans", "ProxyServer", "TLS", "Trees",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),

        // The library: the same cores without configuration files, server and daemon; downloads, and what is made of them.
        module(
            "Drydock",
            [
                "EventLoop", "Files", "HTTPWire", "HTTPCaching", "Policies", "Upstream", "CacheStore", "Content",
                "DiskStore", "DownloadCore", "ServiceCore",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ]
        ),
        module(
            "DrydockServices",
            [
                "Drydock", "EventLoop", "HTTPWire", "HTTPCaching", "Mapping", "Policies", "Upstream", "Content",
                "DownloadCore", "DemoMode", "ServiceCore", "Trees",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ]
        ),
        // For programs that run a group of services; a product of its own, so that others do without the package.
        module(
            "DrydockLifecycle",
            ["Drydock", .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")]
        ),

        // For the tests of programs that use the library: a transport that a test scripts, and a clock that it advances.
        module("DrydockTesting", ["Drydock", .product(name: "HTTPTypes", package: "swift-http-types")]),

        // Test support is a module of its own: a scripted origin, a raw client, the release binary as a process.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .target(name: "LoopSupport", dependencies: ["EventLoop"], path: "Tests/LoopSupport", swiftSettings: settings),
        .target(
            name: "StoreSupport",
            dependencies: ["CacheStore", "EventLoop", "HTTPCaching", "HTTPWire"],
            path: "Tests/StoreSupport",
            swiftSettings: settings
        ),
        .target(
            name: "KeySupport",
            dependencies: ["Configuration", "TLS", "TestSupport"],
            path: "Tests/KeySupport",
            swiftSettings: settings
        ),
        .target(
            name: "LibrarySupport",
            dependencies: [
                "Drydock", "TestSupport", .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/LibrarySupport",
            swiftSettings: settings
        ),
        tests("EventLoopTests", ["EventLoop"]),
        tests("FilesTests", ["Files", "EventLoop"]),
        tests("TLSTests", ["TLS", "CLibssl", "EventLoop"]),
        tests("PoliciesTests", ["Policies"]),
        tests("HTTPWireTests", ["HTTPWire"]),
        tests("YAMLTests", ["YAML"]),
        tests("HTTPCachingTests", ["HTTPCaching", "HTTPWire"]),
        tests("UpstreamTests", ["Upstream", "EventLoop", "HTTPWire", "LoopSupport", "TLS"]),
        tests("ContentTests", ["Content", "HTTPWire", "Policies"]),
        tests("MappingTests", ["Mapping"]),
        tests("TreesTests", ["Trees", "HTTPWire", "Policies"]),
        tests("MatchingTests", ["Matching", "HTTPWire", "Trees"]),
        tests("ContractsTests", ["Contracts", "HTTPWire", "Matching"]),
        tests(
            "InterchangeTests",
            ["Interchange", "Configuration", "Content", "Contracts", "Matching", "Trees", "YAML"],
            exclude: ["Samples"]
        ),
        tests("SQLiteTests", ["SQLite"]),
        tests(
            "CacheStoreTests",
            ["CacheStore", "Files", "Policies", "EventLoop", "HTTPWire", "HTTPCaching", "LoopSupport", "StoreSupport"]
        ),
        tests(
            "DiskStoreTests",
            [
                "DiskStore", "CacheStore", "Files", "Policies", "SQLite", "EventLoop", "HTTPWire", "HTTPCaching",
                "LoopSupport", "StoreSupport",
            ]
        ),
        tests(
            "DownloadCoreTests",
            [
                "DownloadCore", "CacheStore", "DiskStore", "Content", "Policies", "Upstream", "EventLoop", "HTTPWire",
                "HTTPCaching", "LoopSupport",
            ]
        ),
        tests(
            "ServiceCoreTests",
            [
                "ServiceCore", "CacheStore", "DiskStore", "Content", "DemoMode", "DownloadCore", "Files", "Mapping",
                "Policies", "Trees",
                "Upstream", "EventLoop", "HTTPWire", "HTTPCaching", "LoopSupport",
            ]
        ),
        tests("DemoModeTests", ["DemoMode", "Matching", "HTTPWire", "Policies", "Trees"]),
        tests(
            "ConfigurationTests",
            [
                "Configuration", "EventLoop", "HTTPCaching", "Matching", "Policies", "TLS", "Upstream", "Content",
                "KeySupport", "Trees",
            ],
            exclude: ["Texts"]
        ),
        tests(
            "PlansTests",
            [
                "Plans", "Configuration", "CacheStore", "Content", "DownloadCore", "HTTPCaching", "HTTPWire",
                "Interchange", "Policies", "ProxyServer", "ServiceCore", "Upstream",
            ]
        ),
        tests(
            "ProxyServerTests",
            [
                "ProxyServer", "Plans", "Configuration", "CacheStore", "DiskStore", "Content", "DownloadCore",
                "EventLoop",
                "HTTPWire", "HTTPCaching", "Policies", "Upstream", "ServiceCore", "DrydockDaemon", "KeySupport", "TLS",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        tests(
            "DrydockDaemonTests",
            [
                "DrydockDaemon", "Plans", "ProxyServer", "ServiceCore", "DemoMode", "DownloadCore", "Content",
                "CacheStore", "DiskStore", "HTTPWire", "EventLoop", "Configuration", "KeySupport", "Policies",
                "Files", "TLS",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        example("DrydockExample", "Download"),
        example("DrydockDownloader", "Downloader"),
        example("DrydockResources", "Resources", ["Drydock", "DrydockServices"]),
        tests(
            "DrydockTests",
            [
                "Drydock", "DrydockTesting", "DrydockLifecycle", "LibrarySupport", "CacheStore", "DiskStore",
                "DownloadCore", "EventLoop", "HTTPCaching", "ServiceCore",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        tests(
            "DrydockServicesTests",
            [
                "Drydock", "DrydockServices", "DrydockTesting", "LibrarySupport", "DemoMode", "HTTPWire",
                "Policies", "ServiceCore",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            resources: [.copy("Demo/Played")]
        ),
        tests("ScenarioTests", [], exclude: ["Programs", "Rules", "Texts"]),
    ]
)

/// Keeps of the package what the tests of these modules need, and leaves out all else: nothing of it is built.
@MainActor func keepTests(of modules: String) {
    // Programs that the tests start as processes, and so do not import.
    let programs = ["DrydockServicesTests": ["DrydockExample", "DrydockDownloader", "DrydockResources"]]
    var waiting = modules.split(separator: " ").map { "\($0)Tests" }
    var kept: Set<String> = []
    while let name = waiting.popLast() {
        guard kept.insert(name).inserted else { continue }
        guard let target = package.targets.first(where: { $0.name == name }) else {
            fatalError("no target is called \(name): DRYDOCK_MODULES names modules that have tests, such as CacheStore")
        }
        waiting += programs[name] ?? []
        for dependency in target.dependencies {
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): waiting.append(name)
            default: break
            }
        }
    }
    package.targets.removeAll { !kept.contains($0.name) }
    package.products = []
}

// A working day: DRYDOCK_MODULES="CacheStore DownloadCore" builds the tests of these modules alone; without it, all are built.
// .ci/sanitize says in the same way which modules it tests, with a flag for them.
if let modules = Context.environment["DRYDOCK_SANITIZED"] ?? Context.environment["DRYDOCK_MODULES"], !modules.isEmpty {
    keepTests(of: modules)
}

// The library alone: Benchmarks/library has packages whose modules are called like some of the daemon.
if Context.environment["DRYDOCK_LIBRARY"] == "1" {
    let daemon = [
        "Contracts", "Interchange", "Configuration", "ProxyServer", "Plans", "DrydockDaemon", "DrydockCommand",
        "KeySupport",
        "LibrarySupport",
    ]
    package.targets.removeAll { $0.type == .test || daemon.contains($0.name) }
    package.products.removeAll { $0 is Product.Executable }
}

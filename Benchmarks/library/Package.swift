// swift-tools-version: 6.2
// The library beside async-http-client; a package of its own, so that nobody else needs that client.

import PackageDescription

let package = Package(
    name: "library-benchmark",
    dependencies: [
        .package(name: "drydock", path: "../.."),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    ],
    targets: [
        .executableTarget(
            name: "LibraryBenchmark",
            dependencies: [
                .product(name: "Drydock", package: "drydock"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        )
    ]
)

// Seeds in the admin API: stored responses into a folder, and a folder into the store.

package import AdminAPI
import HTTPWire
package import Policies

/// Implemented where the daemon is put together.
package protocol SeedActions: Sendable {
    /// Writes the stored responses into a folder that the daemon can write.
    /// - Parameter service: limits the export to one service, `forward` or empty for forward mode; nil exports all.
    func exportSeeds(to path: String, service: String?) async throws(Problem) -> AdminSeedExport
    /// Stores the files of a folder that are not stored yet.
    func importSeeds(_ order: SeedImportOrder) async throws(Problem) -> AdminSeedImport
}

/// What `POST /v1/seed?import=` asks for.
package struct SeedImportOrder: Sendable, Equatable {
    /// Absolute.
    package var path: String
    /// Nil detects the layout by the names in the folder.
    package var layout: SeedLayout?
    /// URLs of folders that names of layout `docker` may come from.
    package var parents: [String] = []

    package init(path: String) { self.path = path }
}

extension SeedActions {
    /// What copies into a folder, and from one.
    package var seedRoutes: [AdminRoute] {
        [
            AdminRoute(.post, .seed) { request async throws(Problem) in
                let query = request.query
                switch (query["export"], query["import"]) {
                case (let path?, nil):
                    try request.check(["export", "service"])
                    try check(folder: path)
                    return try .json(await self.exportSeeds(to: path, service: query["service"]))
                case (nil, let path?):
                    try request.check(["import", "layout", "parent"])
                    try check(folder: path)
                    var order = SeedImportOrder(path: path)
                    if let layout = query["layout"] {
                        guard let known = SeedLayout(rawValue: layout) else {
                            throw Problem.badQuery("layout: there are url and docker, not '\(layout)'")
                        }
                        order.layout = known
                    }
                    order.parents = request.queryItems.filter { $0.name == "parent" }.map(\.value)
                    return try .json(await self.importSeeds(order))
                default: throw Problem.badQuery("give either export=DIR or import=DIR")
                }
            }
        ]
    }
}

extension AdminRequest {
    /// - Throws: that the query has another member than these.
    func check(_ names: Set<String>) throws(Problem) {
        for (name, _) in queryItems where !names.contains(name) {
            throw Problem.badQuery("\(name) is not known here; there are \(names.sorted().joined(separator: ", "))")
        }
    }
}

/// - Throws: that a path is not absolute.
func check(folder path: String) throws(Problem) {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else {
        throw Problem.badQuery(
            "'\(path)' is not an absolute path; the daemon may have another working folder than you"
        )
    }
}

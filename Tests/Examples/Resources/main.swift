// Resources: a list of users as JSON, from a URL to Swift values, through the cache.

import Drydock
import Foundation

struct User: Decodable, Sendable {
    let name: String
    let city: String
}

struct Users: Resource {
    /// A whole URL.
    let location: String

    var endpoint: Endpoint { Endpoint(location) }

    func model(from result: DownloadResult) throws -> [User] {
        try JSONDecoder().decode([User].self, from: result.data)
    }
}

let loader = ResourceLoader(transport: DownloadManager.shared)
for location in CommandLine.arguments.dropFirst() {
    do {
        let users = try await loader.load(Users(location: location))
        for user in users.model { print("\(user.name) lives in \(user.city) (\(users.outcome))") }
    } catch .mapping(_, let result) {
        print("\(location) is no list of users: \(result.data.count) bytes")
    } catch {
        print("\(location) brought nothing: \(error)")
    }
}

// The files in the folder in which the commands of a transcript run.

/// The configuration of the daemon, and files that commands read.
enum CommandFiles {
    /// The files by their names in the folder.
    static let all: [(name: String, text: String)] = [
        ("demo/user.json", #"{"id": 1, "name": "Ada"}"#),
        ("list.txt", "/shop/a\n/shop/missing\n"),
        ("list.jsonl", #"{"url": "/shop/c", "headers": {"Accept": "application/json"}}"# + "\n"),
        ("noted.yaml", noted),
        ("broken.yaml", broken),
        ("pets.har", har),
        ("served.yaml", served),
    ]

    /// The configuration of the daemon.
    /// - Parameters:
    ///   - folder: where the file is.
    ///   - port: where it listens.
    ///   - shop: the URL of an origin that is there.
    ///   - parcels: the URL of an origin that goes away and comes back.
    static func configuration(folder: String, port: Int, shop: String, parcels: String) -> String {
        """
        listen: 127.0.0.1:\(port)
        admin: { listen: "unix:\(folder)/admin.sock", mode: "0600" }
        loops: 2
        name: drydock
        clock: { movable: true }
        journal: 1MiB
        log: { access: off }
        cache:
          memory: { size: 64MiB }
          disk: { path: ./cache, size: 1GiB, min_free: 1MiB }
        services:
          - name: shop
            match: { prefix: /shop }
            base_url: \(shop)
            recordings: { dir: ./recordings }
            endpoints:
              - { name: item, path: "/items/:id" }
              - { name: login, method: POST, path: /login }
          - name: parcels
            match: { prefix: /parcels }
            base_url: \(parcels)
            park: 10m
            cache: { stale_if_error: 0s }
          - name: away
            match: { prefix: /away }
            base_url: http://127.0.0.1:9
            breaker: { failures: 2, window: 10m, open: 1h }
          - name: play
            match: { prefix: /play }
            demo:
              enabled: true
              files: ./demo
              random_seed: 7
              failure: { chance: 50%, status: 503 }
              rules:
                - { name: teapot, when: { path: /teapot }, status: 418 }
            endpoints: [{ name: user, path: "/users/:id" }]
        groups:
          - name: morning
            calls:
              - { service: shop, endpoint: login, body: '{"user": "me"}', take: { id: body.id } }
              - { service: shop, endpoint: item, params: { id: $(id) } }
              - { service: away, path: /news }
        purge:
          - { older_than: 30d, every: 1d }
        prefetch:
          - { name: catalogue, urls: [/shop/catalogue], every: 1d }

        """
    }

    /// A configuration with warnings and notes, and without a mistake.
    private static let noted = """
        listen: ":18080"
        clients: [any]
        services:
          - name: api
            match: { prefix: /api }
            base_url: http://127.0.0.1:9
            cache: { mode: none, ttl: 5m }
            breaker: { open: 1m }

        """

    /// A configuration with mistakes.
    private static let broken = """
        listen: localhost
        services:
          - name: api
            match: { prefix: api }
            base_url: ftp://127.0.0.1
            cache: { ttl: 5, mod: none }
          - name: api
            match: { prefix: /other }

        """

    /// A configuration for another daemon, whose limits fit every machine.
    private static let served = """
        listen: "127.0.0.1:0"
        admin: none
        loops: 1
        cache: { memory: { size: 1MiB } }
        limits: { connections: 10 }
        services: [{ name: api, match: { prefix: /api }, base_url: "http://127.0.0.1:9" }]

        """

    /// What a browser saved.
    private static let har = #"""
        {"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": [
          {"startedDateTime": "2026-01-01T00:00:00Z", "time": 5,
           "request": {"method": "GET", "url": "https://pets.example.com/pets/1", "httpVersion": "HTTP/1.1",
            "headers": [{"name": "Authorization", "value": "Bearer abc"}], "queryString": [], "cookies": [],
            "headersSize": -1, "bodySize": 0},
           "response": {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [],
            "headers": [{"name": "Content-Type", "value": "application/json"}],
            "content": {"size": 15, "mimeType": "application/json", "text": "{\"name\": \"Rex\"}"},
            "redirectURL": "", "headersSize": -1, "bodySize": 15},
           "cache": {}, "timings": {"send": 0, "wait": 5, "receive": 0}}
        ]}}

        """#
}

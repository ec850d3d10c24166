// Names that carry credentials, by their words.

import Foundation
import Testing

@testable import Content

@Suite struct SecretNameTests {
    @Test(
        arguments: [
            ("Authorization", true), ("X-Api-Key", true), ("PRIVATE-TOKEN", true), ("Cookie", true), ("api_key", true),
            ("apikey", true), ("apiKey", true), ("API_KEY", true), ("key", true), ("access_token", true),
            ("accessToken", true),
            ("client_secret", true), ("session[id]", true), ("X-ApiKey", true), ("hub.signature", true),
            ("keys", false),
            ("page", false), ("per_page", false), ("max_tokens", false), ("monkey", false), ("X-Debug", false),
            ("author", false), ("appid", false), ("", false), ("X-CSRFToken", true), ("X-JWTToken", true),
            ("sessionid", true), ("X-Sessionid", true), ("csrftoken", true), ("accesstoken", true), ("Authtoken", true),
            ("X-OAuth-Scopes", false), ("X-Token-Count", false), ("token_type", false), ("tokenType", false),
            ("token_endpoint", false), ("password_required", false), ("X-OAuth-Token", true), ("SAMLResponse", true),
            ("client_assertion", true), ("cvv", true), ("assertion", false), ("code", false), ("new_password", true),
            ("pass", true), ("X-Pass-Through", false), ("bearer", true), ("HTMLKeyboard", false), ("tokenizer", false),
            ("Cookie2", true), ("DPoP", true), ("X-Otp", true), ("X-TOTP-Code", true), ("X-GitHub-OTP", true),
            ("X-XSRF", true), ("client_assertion", true), ("optical", false), ("cookies2", false),
        ] as [(String, Bool)]
    )
    func names(_ name: String, isSecret: Bool) { #expect(SecretNames.contains(name) == isSecret) }

    @Test(
        arguments: [
            ("Referer", true), ("X-Original-URL", true), ("X-Rewrite-Url", true), ("X-Forwarded-Uri", true),
            ("Cookie2", true), ("X-Otp", true), ("Accept", false), ("User-Agent", false), ("X-Urlencoded", false),
            ("Content-Type", false), ("Origin", false), ("", false),
        ] as [(String, Bool)]
    )
    func `what stays behind when a redirect leads to another origin`(name: String, stays: Bool) {
        #expect(SecretNames.isForOneOrigin(name) == stays)
    }

    @Test func thePageHasTheTable() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Documentation/guide/secrets.md"
        )
        // A row without a name continues the one above it.
        let page = try String(contentsOf: root, encoding: .utf8).replacing(" |\n| | ", with: ", ")
        #expect(page.contains("\n\n" + SecretNames.table.joined(separator: "\n") + "\n\n"))
    }
}

// Names that carry credentials, by their words.

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
            ("pass", true), ("X-Pass-Through", false), ("bearer", true), ("HTMLKeyboard", false), ("tokenizer", false),
        ] as [(String, Bool)]
    )
    func names(_ name: String, isSecret: Bool) { #expect(SecretNames.contains(name) == isSecret) }
}

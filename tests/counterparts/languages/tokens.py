"""Makes key sets and tokens, and prints them as JSON."""

import base64, hashlib, hmac, json, time
import jwt
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives import serialization

def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

rsa_key, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
p256, p384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ed = ed25519.Ed25519PrivateKey.generate()
secret = b"a secret of more than thirty-two bytes, for all three hashes ....."
jwk = lambda algorithm, key, kid, **more: dict(json.loads(algorithm.to_jwk(key.public_key())), kid=kid, **more)
rsa_jwk = jwk(RSAAlgorithm, rsa_key, "rsa", use="sig")
keys = [
    rsa_jwk,
    jwk(ECAlgorithm, p256, "p256"),
    jwk(ECAlgorithm, p384, "p384", alg="ES384"),
    jwk(OKPAlgorithm, ed, "ed"),
    {"kty": "oct", "k": b64(secret), "kid": "secret"},
]
now = int(time.time())
claims = {"sub": "alice", "exp": now + 3600, "iss": "https://auth.example.com", "aud": ["web", "api"],
          "n": 7, "groups": ["a", "b"], "admin": True, "nested": {"a": 1}}
def token(key, alg, kid, changes={}, headers={}):
    own = {name: value for name, value in {**claims, **changes}.items() if value is not None}
    kid = {"kid": kid} if kid else {}
    return jwt.encode(own, key, algorithm=alg, headers={**kid, **headers})

good = {alg: token(rsa_key, alg, "rsa") for alg in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]}
good["ES256"], good["ES384"] = token(p256, "ES256", "p256"), token(p384, "ES384", "p384")
good["EdDSA"] = token(ed, "EdDSA", "ed")
good.update({alg: token(secret, alg, "secret") for alg in ["HS256", "HS384", "HS512"]})
good["no kid"] = token(p256, "ES256", None)
good["just now"] = token(ed, "EdDSA", "ed", {"exp": now - 20})
good["soon"] = token(ed, "EdDSA", "ed", {"nbf": now + 20})
good["one audience"] = token(ed, "EdDSA", "ed", {"aud": "api"})

def signed(header, mac):
    text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(claims).encode())
    return text + "." + b64(mac(text.encode()))
pem = rsa_key.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
der = rsa_key.public_key().public_bytes(
    serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
modulus = base64.urlsafe_b64decode(rsa_jwk["n"] + "==")
by = lambda key: lambda text: hmac.new(key, text, hashlib.sha256).digest()
bad = {
    "none": signed({"alg": "none", "kid": "rsa"}, lambda _: b""),
    "None": signed({"alg": "None"}, lambda _: b""),
    "none with a signature": signed({"alg": "none", "kid": "secret"}, by(secret)),
    "another key": token(other, "RS256", "rsa"),
    "another name of the key": token(rsa_key, "RS256", "p256"),
    "an unknown name of the key": token(rsa_key, "RS256", "other"),
    "another way than that of the key": signed({"alg": "ES256", "kid": "p384"}, by(secret)),
    "the public key as a secret, PEM": signed({"alg": "HS256", "kid": "rsa"}, by(pem)),
    "the public key as a secret, DER": signed({"alg": "HS256", "kid": "rsa"}, by(der)),
    "the modulus as a secret": signed({"alg": "HS256", "kid": "rsa"}, by(modulus)),
    "the public key as a secret without a name": signed({"alg": "HS256"}, by(pem)),
    "an empty secret": signed({"alg": "HS256"}, by(b"")),
    "expired": token(rsa_key, "RS256", "rsa", {"exp": now - 90}),
    "no exp": token(rsa_key, "RS256", "rsa", {"exp": None}),
    "not yet": token(rsa_key, "RS256", "rsa", {"nbf": now + 3600}),
    "no aud": token(rsa_key, "RS256", "rsa", {"aud": None}),
    "another aud": token(rsa_key, "RS256", "rsa", {"aud": ["web"]}),
    "no iss": token(rsa_key, "RS256", "rsa", {"iss": None}),
    "another iss": token(rsa_key, "RS256", "rsa", {"iss": "https://auth.example.com/"}),
    "crit": token(rsa_key, "RS256", "rsa", headers={"crit": ["b64"], "b64": False}),
    "cut": good["RS256"][:-1],
    "two parts": good["RS256"].rsplit(".", 1)[0],
    "four parts": good["RS256"] + ".a",
    "other claims": ".".join([good["RS256"].split(".")[0],
        b64(json.dumps({**claims, "sub": "bob"}).encode()), good["RS256"].split(".")[2]]),
    "no token": "",
    "no text": "\u00e9",
}
print(json.dumps({
    "keys": json.dumps({"keys": keys}), "without rsa": json.dumps({"keys": keys[1:]}),
    "good": good, "bad": bad,
}))

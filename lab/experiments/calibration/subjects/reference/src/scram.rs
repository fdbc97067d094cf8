//! The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.

use std::fs::File;
use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// One authentication.
pub struct Scram {
    password: String,
    bare: String,
}

impl Scram {
    /// With a nonce from the kernel.
    pub fn new(password: &str) -> io::Result<Self> {
        let mut nonce = [0; 18];
        File::open("/dev/urandom")?.read_exact(&mut nonce)?;
        let bare = format!("n=,r={}", STANDARD.encode(nonce));
        Ok(Self { password: password.to_owned(), bare })
    }

    /// What the client says first.
    pub fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// What the client says to the server's challenge.
    pub fn last(&mut self, challenge: &str) -> io::Result<String> {
        let field = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name));
        let wrong = || io::Error::other("Postgres asks for something else than SCRAM-SHA-256");
        let nonce = field("r=").ok_or_else(wrong)?;
        let salt = STANDARD.decode(field("s=").ok_or_else(wrong)?).map_err(io::Error::other)?;
        let iterations: u32 = field("i=").and_then(|i| i.parse().ok()).ok_or_else(wrong)?;
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{challenge},{without_proof}", self.bare);
        let client = hmac(&salted(self.password.as_bytes(), &salt, iterations), b"Client Key");
        let signature = hmac(&Sha256::digest(client), message.as_bytes());
        let proof: Vec<u8> = client.iter().zip(signature).map(|(one, other)| one ^ other).collect();
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }
}

fn salted(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    let mut block = hmac(password, &[salt, &[0, 0, 0, 1]].concat());
    let mut sum = block;
    for _ in 1..iterations {
        block = hmac(password, &block);
        sum.iter_mut().zip(block).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    // HMAC takes keys of every length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7677_comes_out() {
        let bare = "n=user,r=rOprNGfwEbeRWgbNEkqO".to_owned();
        let mut scram = Scram { password: "pencil".to_owned(), bare };
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let last = scram.last(challenge).unwrap();
        assert!(last.ends_with("p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{last}");
    }
}

"""The command `outrider` that came with this package."""

from __future__ import annotations

import os
import ssl
import sys

from ._library import packaged

# Where distributions keep the certificates of authorities; the OpenSSL in the package was built for
# Debian's place.
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem")


def main() -> None:
    """Becomes the command."""
    program = packaged("bin/outrider")
    if program is None:
        sys.exit("outrider: this package was built without the command")
    if "SSL_CERT_FILE" not in os.environ and "SSL_CERT_DIR" not in os.environ:
        for file in (ssl.get_default_verify_paths().cafile, *CERTIFICATES):
            if file and os.path.exists(file):
                os.environ["SSL_CERT_FILE"] = file
                break
    os.execv(program, ["outrider", *sys.argv[1:]])

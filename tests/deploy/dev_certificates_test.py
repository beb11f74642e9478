#!/usr/bin/env python3
"""Runs deploy/dev-certificates and asks openssl what it made."""

import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "dev-certificates"


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, text=True,
                          capture_output=True).stdout


class DevCertificatesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "tls"

    def make(self, *names):
        return subprocess.run([PROGRAM, self.folder, *names], check=False, text=True,
                              capture_output=True)

    def verify(self, name):
        openssl("verify", "-CAfile", self.folder / name / "ca.pem", self.folder / name / "cert.pem")

    def test_each_name_gets_a_certificate_of_one_ca(self):
        result = self.make("node-1", "worker")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("node-1", "worker"):
            self.verify(name)
            text = openssl("x509", "-noout", "-text", "-in", self.folder / name / "cert.pem")
            self.assertIn(f"URI:spiffe://cairn.dev/{name}", text)
            self.assertIn("TLS Web Server Authentication, TLS Web Client Authentication", text)
            public = openssl("x509", "-noout", "-pubkey", "-in", self.folder / name / "cert.pem")
            key = self.folder / name / "key.pem"
            self.assertEqual(public, openssl("pkey", "-pubout", "-in", key))
            self.assertEqual(key.stat().st_mode & 0o077, 0)

    def test_again_exchanges_the_folder_and_keeps_the_ca(self):
        self.make("node-1", "worker")
        before = (self.folder / "node-1").resolve()
        ca = (self.folder / "ca" / "cert.pem").read_bytes()
        self.assertEqual(self.make("node-1").returncode, 0)
        self.assertNotEqual((self.folder / "node-1").resolve(), before)
        self.assertFalse(before.exists())
        self.assertEqual((self.folder / "ca" / "cert.pem").read_bytes(), ca)
        self.verify("node-1")
        self.verify("worker")

    def test_names_that_are_none_are_refused(self):
        for name in ("ca", "../up", "Upper", ""):
            result = self.make(name)
            self.assertEqual(result.returncode, 2, name)
            self.assertIn("is no name", result.stderr)
        self.assertEqual(self.make().returncode, 2)


if __name__ == "__main__":
    unittest.main()

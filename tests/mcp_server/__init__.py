"""Tests of the room of the same name: the SDK's own client talks to it, in memory and over stdio."""

"""Damaged files for everything that reads one. Whatever is in a file, a reader ends with what it read or a RegardError.

targets.py   what reads, as functions of the bytes of one file; the list that tests and fuzzers share
seeds.py     whole files to begin with, and model folders of which one file is replaced
edits.py     what damages a file: bytes, and values inside JSON and safetensors headers
__main__.py  atheris, guided by which lines of Regard a file reaches: python -m fuzz TARGET --seconds 600
"""

"""Translating and reading with CTranslate2, a C++ library for Transformers on a processor. Nothing here needs torch."""

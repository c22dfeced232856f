"""The extension module, for any CPython from 3.11 on."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "apiserver_accelerator",
            ["scan.cpp"],
            language="c++",
            extra_compile_args=["-std=c++20", "-O3"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

"""Why files of the corpus do not come through HSDS 1.0.2, h5pyd 1.0.0 and hsload as they were: each difference has a cause."""

from fnmatch import fnmatchcase
from re import match
from typing import NamedTuple


class Defect(NamedTuple):
    """What is to blame for differences, and where it is in the sources of the packages."""

    cause: str
    where: str
    # Files (patterns), and regular expressions that the texts of their differences begin with.
    differences: dict

    def explains(self, name, difference):
        return any(fnmatchcase(name, files) and match(text, difference) for files, text in self.differences.items())


# The list of tools/cli/tests/program/hsds.rs has them, too.
NOT_IN_THE_SCHEMA = [
    Defect("elements are in raw files", "HDF5/JSON, layout", {
        name: ".*a dataset in raw files is not supported" for name in (
            "generated/external.earliest.h5",
            "libhdf5/h5repack/h5repack_ext.h5",
            "libhdf5/h5repack/h5repack_*_ex.h5",
            "libhdf5/h5stat/h5stat_filters.h5",
            "libhdf5/tools/tfilters.h5",
        )
    }),
    Defect("a user-defined link", "HDF5/JSON, link", {
        name: ".*a user-defined link in an object store is not supported" for name in (
            "generated/links.earliest.h5", "generated/links.v110.h5", "libhdf5/h5jam/tall.h5",
        )
    }),
    Defect("a name that is no UTF-8", "JSON", {"generated/names.latest.h5": ".*a name that is no UTF-8"}),
    Defect("a virtual dataset", "HDF5/JSON, layout", {
        name: ".*a virtual dataset is not supported" for name in (
            "generated/vds.v1??.h5", "libhdf5/vds/*_vds.h5", "libhdf5/vds/vds-eiger.h5",
        )
    }),
    Defect("a filter that nobody has", "the file itself", {
        name: r".*filter \d+ \(.*\) is not available" for name in (
            "libhdf5/h5copy/tudfilter.h5", "libhdf5/h5repack/h5repack_layout.UD.h5", "libhdf5/tools/filter_fail.h5",
        )
    }),
    Defect("objects in it have messages that are to make programs refuse them", "the file itself", {
        "libhdf5/test/tbogus.h5": ".*unknown, and marked as one that must be known",
    }),
]

# Written by h5live, read by h5pyd.
THROUGH_HSDS = [
    Defect("the schema has no such type: h5live shows it as opaque bytes", "HDF5/JSON, datatype", {
        "generated/filters_nbit.earliest.h5": r"/(array|comp|float20|int\d|stacked): (type|fill value|values)",
        "generated/types_complex.latest.h5": "/ld: type",
        "generated/types_float.*.h5": r"/(bf16|f20_\d|f56|f8_\d|ldouble(_be)?|msbset): (type|fill value|values)",
        "generated/types_int.latest.h5": r"/(@part\d: attribute|part\d: (type|fill value|values))",
        "generated/types_misc.*.h5": "/bits9: type",
        "libhdf5/h5diff/h5diff_basic1.h5": "/g1/ld: (type|fill value|values)",
        "libhdf5/h5repack/h5repack_nested_8bit_enum*.h5": "/tracks/1/trace: type",
        "libhdf5/tools/tldouble*.h5": "/dset: (type|fill value|values)",
    }),
    Defect("tags of opaque types are lost, by which h5py has times and strings", "h5json/hdf5dtype.py, createDataType", {
        "jhdf/opaque_datasets_earliest.hdf5": "/(opaque_2d_string|timestamp): (type|fill value)",
    }),
    Defect("there are no arrays of sequences", "h5json/hdf5dtype.py, createBaseDataType", {
        "generated/types_array_vlen.*.h5": "/array_vlen: kind: TypeError",
        "generated/types_compound_vlen.v110.h5": "/arrays(_t)?: kind: TypeError",
    }),
    Defect("names of members are ASCII", "h5json/hdf5dtype.py, createDataType", {
        "generated/types_compound.*.h5": "/names: kind: TypeError . non-ascii field name",
    }),
    Defect("h5py reads unsigned values of an enumeration as signed, and cuts them", "h5py/h5t.pyx, TypeEnumID", {
        "generated/types_misc.*.h5": "/enum_STD_U64LE: type",
    }),
    Defect("an empty sequence reads as the number 0", "h5json/array_util.py, readElement", {
        "generated/references.v110.h5": "/vlen_refs: values",
        "generated/types_array_vlen.*.h5": "/vlen(_array|_chunked|_unwritten)?: values",
        "generated/types_compound_vlen.v110.h5": "/(chunked|committed|filtered|table): values",
        "jhdf/test_vlen_datasets_latest.hdf5": "/vlen_issue_247(_chunked)?: values",
        "libhdf5/tools/tempty.h5": "/Dataset1.0: values",
        "realworld/netcdf4_types.nc": "/ragged_v: (fill value|values)",
    }),
    Defect("sequences of what varies in length are read as numbers", "h5json/array_util.py, readElement", {
        "generated/types_array_vlen.*.h5": "/vlen_(vlen|vstr): values: OSError",
        "libhdf5/h5copy/h5copytst_new.h5": "/(.*/)?nested_vl: values: OSError",
    }),
    Defect("the size of compounds with parts of variable length is counted wrongly", "h5json/array_util.py, getElementSize", {
        "jhdf/compound_datasets_*.hdf5": "/(array_vlen_)?(chunked|contiguous)_compound: values: OSError",
        "libhdf5/h5diff/h5diff_comp_vl_strs.h5": r"/group(_copy)?/Compound_dset\d: values: OSError",
    }),
    Defect("arrays of compounds beside parts of variable length are not copied", "h5json/array_util.py, copyElement", {
        "libhdf5/h5diff/compounds_array_vlen?.h5": "/dset[34]: values: OSError",
    }),
    Defect("sequences of compounds in attributes are taken for numbers", "h5json/array_util.py, jsonToArray", {
        "libhdf5/h5diff/compounds_array_vlen?.h5": "/@attr1: attribute: TypeError",
    }),
    Defect("compounds of one member and arrays of strings are not seen as such", "h5json/array_util.py, readElement", {
        "libhdf5/tools/tvlenstr_array.h5": "/(Compound|Scalar)ArrayOfVlenStr: values: OSError",
    }),
    Defect("it is asked whether the array of a fill value is true, which numpy refuses", "hsds/dset_lib.py, getFillValue", {
        "generated/fill_values.v110.h5": "/arr: values: OSError",
    }),
    Defect("HSDS fills also where the fill time is `never`", "hsds, which does not look at fillTime", {
        "generated/fill_values.v110.h5": "/t1_(chunk|contig)_user: values",
    }),
    Defect("a maximum of 0 is no limit", "h5pyd/_hl/dataset.py, maxshape", {
        "generated/spaces.earliest.h5": r"/zero2?_\w: shape",
        "realworld/hdf5storage_mat_python.h5": "/#refs#/d/z: shape",
    }),
    Defect("it is not known how strings are padded", "h5json/hdf5dtype.py, createDataType", {
        "generated/types_string.earliest.h5": r"/(@fix_2\d: attribute|(fix_\d\d|fortran): values)",
        "jhdf/space_padding_problem.hdf5": "/@Test: attribute",
        "libhdf5/h5diff/h5diff_strings2.h5": "/string[24]: values",
        "libhdf5/h5repack/h5repack_attr.h5": r"/(dset|g1/)?@string(\dD)?: attribute",
        "libhdf5/tools/tstr.h5": "/string[24]: values",
        "libhdf5/tools/tstr2.h5": "/g5/dset5: values",
        "libhdf5/tools/tstring-at.h5": "/dset1@attr1: attribute",
    }),
    Defect("a region has a number of elements, and no shape", "h5pyd/_hl/base.py, RegionReference", {
        "generated/references.v110.h5": "/regions: values",
    }),
    Defect("h5live does not copy objects to which no link leads, and says so", "h5live copy", {
        "generated/references.v110.h5": "/refs: values",
    }),
]

# Written by hsload, read by h5live.
FROM_HSLOAD = [
    Defect("hsload does not know the filter", "h5json/filters.py, getFilterItem", {
        name: "hsload: KeyError: .*filter unknown" for name in (
            "generated/filters_nbit.earliest.h5",
            "generated/filters_plugins.earliest.h5",
            "hdf5-pure/zfp/*.h5",
            "jhdf/bitshuffle_datasets.hdf5",
            "jhdf/lz4_datasets.hdf5",
            "purehdf/bzip2.h5",
            "realworld/pandas_hdfstore.h5",
            "realworld/pytables_compressors.h5",
        )
    }),
    Defect("HSDS refuses LZF and szip: `Unsupported filter id`", "hsds/servicenode_lib.py", {
        name: "hsload: OSError: createObjects POST to datasets failed with status: 400" for name in (
            "generated/filters_basic.*.h5",
            "generated/filters_szip.*.h5",
            "hdf5-pure/lzf/*.h5",
            "jhdf/test_compressed_chunked_datasets_*.hdf5",
            "jhdf/test_missing_filter.hdf5bad",
            "libhdf5/test/noencoder.h5",
            "purehdf/lzf.h5",
            "realworld/h5netcdf_direct.nc",
        )
    }),
    Defect("h5py has no such type", "h5py/h5t.pyx, py_dtype", {
        "generated/references_std.v112.h5": "hsload: TypeError: Unknown reference type",
        "generated/types_complex.latest.h5": "hsload: TypeError: No NumPy equivalent for TypeComplexID",
        "generated/types_compound.*.h5": "hsload: TypeError: No NumPy equivalent for TypeTimeID",
        "generated/types_int.latest.h5": "hsload: TypeError: data type '>i16' not understood",
        "generated/types_misc.*.h5": "hsload: TypeError: No NumPy equivalent for TypeTimeID",
        "libhdf5/tools/t128bit_float.h5": "hsload: ValueError: Insufficient precision in available types",
        "libhdf5/tools/tvms.h5": "hsload: KeyError: 2",  # numbers in the order of VAX
    }),
    Defect("h5py does not read it", "h5py/h5d.pyx and h5a.pyx, by libhdf5", {
        "generated/fill_values.v110.h5": "hsload: OSError: Can't synchronously read data",
        "hdf5-pure/dense_attrs_colliding_v0_28_0.h5": "hsload: KeyError: .*can't locate attribute in name index",
        "libhdf5/h5diff/h5diff_attr[23].h5": "hsload: OSError: Can't synchronously read data .no appropriate function",
        "libhdf5/h5repack/h5repack_attr.h5": "hsload: OSError: Can't synchronously read data .no appropriate function",
        "libhdf5/tools/tbitnopaque.h5": "hsload: OSError: Can't synchronously read data .no appropriate function",
    }),
    Defect("there are no long doubles, and no times of numpy", "h5json/hdf5dtype.py, getTypeItem", {
        "generated/types_float.*.h5": "hsload: TypeError: Unexpected floating point type: float128",
        "jhdf/opaque_datasets_earliest.hdf5": "hsload: TypeError: unexpected dtype kind: M",
        "libhdf5/h5diff/h5diff_basic1.h5": "hsload: TypeError: Unexpected floating point type: float128",
        "libhdf5/tools/tldouble*.h5": "hsload: TypeError: Unexpected floating point type: float128",
    }),
    Defect("there are no arrays of sequences", "h5json/hdf5dtype.py, createBaseDataType", {
        "generated/types_compound_vlen.v110.h5": "hsload: TypeError: Array Type base type",
    }),
    Defect("h5pyd sends no shape of a null dataspace, and HSDS makes a scalar of it", "h5pyd/hsds_plugin.py, createObjects", {
        "generated/headers.*.h5": "/empty: (shape|values)",
        "generated/spaces.earliest.h5": r"/null_\w+: (shape|values)",
        "jhdf/test_odd_datasets_*.hdf5": "/contiguous_no_storage: (shape|values)",
        "jhdf/test_scalar_empty_datasets_latest.hdf5": r"/empty_\w+: (shape|values)",
        "libhdf5/hl/test_ld.h5": "/DSET_NULL: (shape|values)",
        "libhdf5/tools/tnullspace.h5": "/dset: (shape|values)",
    }),
    Defect("a maximum of 0 is no limit", "h5pyd/_apps/utillib.py, create_dataset", {
        "generated/spaces.earliest.h5": r"/zero2?_\w: shape",
        "realworld/hdf5storage_mat_python.h5": "/#refs#/d/z: shape",
    }),
    Defect("h5pyd takes no references of h5py in types, other than of objects", "h5pyd/_hl/dataset.py, make_new_dset", {
        "generated/references.v110.h5": "hsload: ValueError: Unexpected metadata type",
        "libhdf5/test/bounds_ref_*.h5": "hsload: ValueError: Unexpected metadata type",
    }),
    Defect("hsload makes strings of attributes that are one reference", "h5pyd/_apps/utillib.py, copy_attribute", {
        "generated/userblock.v110.h5": "/g/@ref: attribute",
        "jhdf/test_attribute_earliest.hdf5": "/(hard_link_data|test_group/)@object_reference: attribute",
        "libhdf5/gif2h5/h52giftst.h5": "/image@PALETTE: attribute",
        "realworld/nwb_timeseries.nwb": "/(@.specloc|units/spike_times_index@target): attribute",
    }),
    Defect("hsload leaves out fill values that are references or sequences", "h5pyd/_apps/utillib.py, create_dataset", {
        "hdf5-pure/mat_real/*.mat": ".*: fill value",
        "realworld/netcdf4_types.nc": "/ragged_v: fill value",
    }),
    Defect("strings of variable length in compounds cannot be described", "h5pyd/_apps/utillib.py, dump_dtype", {
        name: "hsload: TypeError: expected np.dtype, but got" for name in (
            "generated/sizes.*.h5", "libhdf5/h5diff/h5diff_comp_vl_strs.h5",
        )
    }),
    Defect("it is asked whether the array of a fill value is true, which numpy refuses", "h5pyd/_hl/dataset.py, make_new_dset", {
        name: "hsload: ValueError: The truth value of an array" for name in (
            "generated/types_array_vlen.*.h5", "libhdf5/tools/tscalarintsize.h5", "libhdf5/tools/tvlenstr_array.h5",
        )
    }),
    Defect("the size of compounds with parts of variable length is counted wrongly", "h5json/array_util.py, getElementSize", {
        "jhdf/compound_datasets_*.hdf5": "hsload: (AttributeError: 'NoneType'|IndexError: bytearray)",
    }),
    Defect("hsload compares sequences of compounds with a number", "h5pyd/_apps/utillib.py, write_dataset", {
        name: "hsload: TypeError: Cannot compare structured or void to non-void arrays" for name in (
            "libhdf5/h5diff/compounds_array_vlen?.h5", "libhdf5/tools/tvldtypes4.h5",
        )
    }),
    Defect("sequences are taken for the dimension of an array", "h5pyd/_hl/dataset.py, __setitem__", {
        name: "hsload: ValueError: cannot reshape array" for name in (
            "libhdf5/h5copy/h5copytst_new.h5", "libhdf5/tools/tempty.h5",
        )
    }),
    Defect("hsload leaves out hard links to the root group", "h5pyd/_apps/utillib.py", {
        "libhdf5/tools/thlink.h5": "/: links",
    }),
]

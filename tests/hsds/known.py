"""Files of the corpus that do not come through HSDS 1.0.2, h5pyd 1.0.0 and hsload as they were, by what they come from.

A file is with the first of its defects that is met. Names may be patterns.
"""

# The list of cli/tests/program/hsds.rs has them, too.
NOT_IN_THE_SCHEMA = {
    "elements are in raw files": [
        "generated/external.earliest.h5",
        "libhdf5/h5repack/h5repack_ext.h5",
        "libhdf5/h5repack/h5repack_*_ex.h5",
        "libhdf5/h5stat/h5stat_filters.h5",
        "libhdf5/tools/tfilters.h5",
    ],
    "a user-defined link": ["generated/links.earliest.h5", "generated/links.v110.h5", "libhdf5/h5jam/tall.h5"],
    "a name that is no UTF-8": ["generated/names.latest.h5"],
    "a virtual dataset": ["generated/vds.v1??.h5", "libhdf5/vds/*_vds.h5", "libhdf5/vds/vds-eiger.h5"],
    "a filter that nobody has": [
        "libhdf5/h5copy/tudfilter.h5",
        "libhdf5/h5repack/h5repack_layout.UD.h5",
        "libhdf5/tools/filter_fail.h5",
    ],
    "objects in it have messages that are to make programs refuse them": ["libhdf5/test/tbogus.h5"],
}

# Written by h5live, read by h5pyd.
THROUGH_HSDS = {
    "h5pyd does not decode attributes in base 64": [
        "generated/attrs_large.latest.h5",
        "jhdf/test_large_attribute.hdf5",
    ],
    "HSDS asks whether the array of a fill value is true, which numpy refuses": [
        "generated/fill_values.v110.h5",  # also: HSDS fills although the fill time is `never`
    ],
    "the schema has no such type, HSDS and h5pyd show it as opaque bytes": [
        "generated/filters_nbit.earliest.h5",
        "generated/types_complex.latest.h5",
        "generated/types_float.*.h5",
        "generated/types_int.latest.h5",
        "libhdf5/h5diff/h5diff_basic1.h5",
        "libhdf5/h5repack/h5repack_nested_8bit_enum*.h5",
        "libhdf5/tools/tldouble.h5",
    ],
    "h5json has no arrays of opaque types, enumerations or sequences": [
        "generated/types_array_vlen.*.h5",
        "libhdf5/tools/tldouble_scalar.h5",
    ],
    "h5json takes no names of members beyond ASCII": ["generated/types_compound.*.h5"],
    "HSDS takes scale-offset for the compressor, and does not decompress": ["generated/filters_scaleoffset.v110.h5"],
    "h5pyd does not read attributes with references to regions": ["generated/references.v110.h5"],
    "HSDS takes a maximum of 0 for no limit": ["generated/spaces.earliest.h5", "realworld/hdf5storage_mat_python.h5"],
    "h5py reads unsigned values of an enumeration as signed, and cuts them": ["generated/types_misc.*.h5"],
    "HSDS and h5pyd do not know how strings are padded": [
        "generated/types_string.earliest.h5",
        "jhdf/space_padding_problem.hdf5",
        "libhdf5/h5diff/h5diff_strings2.h5",
        "libhdf5/h5repack/h5repack_attr.h5",
        "libhdf5/tools/tstr.h5",
        "libhdf5/tools/tstr2.h5",
        "libhdf5/tools/tstring-at.h5",
    ],
    "an empty sequence reads as the number 0": [
        "generated/types_compound_vlen.v110.h5",
        "jhdf/test_vlen_datasets_latest.hdf5",
        "libhdf5/tools/tempty.h5",
    ],
    "h5json does not read variable-length members beside arrays, in arrays, or alone in a compound": [
        "jhdf/compound_datasets_*.hdf5",
        "libhdf5/h5diff/compounds_array_vlen*.h5",
        "libhdf5/h5diff/h5diff_comp_vl_strs.h5",
        "libhdf5/tools/tvlenstr_array.h5",
    ],
    "h5json does not read sequences of sequences": ["libhdf5/h5copy/h5copytst_new.h5"],
    "h5pyd does not know the tags of opaque types, by which h5py has times and strings": [
        "jhdf/opaque_datasets_earliest.hdf5",
    ],
    "HSDS does not take an empty sequence as a fill value": ["realworld/netcdf4_types.nc"],
}

# Written by hsload, read by h5live.
FROM_HSLOAD = {
    "hsload does not know the filter": [
        "generated/filters_nbit.earliest.h5",
        "generated/filters_plugins.earliest.h5",
        "hdf5-pure/zfp/*.h5",
        "jhdf/bitshuffle_datasets.hdf5",
        "jhdf/lz4_datasets.hdf5",
        "purehdf/bzip2.h5",
        "realworld/pytables_compressors.h5",
    ],
    "HSDS refuses datasets with LZF or szip": [
        "generated/filters_basic.*.h5",
        "generated/filters_szip.*.h5",
        "hdf5-pure/lzf/*.h5",
        "jhdf/test_compressed_chunked_datasets_*.hdf5",
        "jhdf/test_missing_filter.hdf5bad",
        "libhdf5/test/noencoder.h5",
        "purehdf/lzf.h5",
        "realworld/h5netcdf_direct.nc",
    ],
    "hsload stops at what h5py does not read (elements, a type, an attribute)": [
        "generated/fill_values.v110.h5",
        "generated/types_complex.latest.h5",
        "generated/types_compound.*.h5",
        "generated/types_int.latest.h5",
        "generated/types_misc.*.h5",
        "hdf5-pure/dense_attrs_colliding_v0_28_0.h5",
        "libhdf5/h5diff/h5diff_attr[23].h5",
        "libhdf5/h5repack/h5repack_attr.h5",
        "libhdf5/tools/t128bit_float.h5",
        "libhdf5/tools/tbitnopaque.h5",
        "libhdf5/tools/tvms.h5",
    ],
    "h5json has no long doubles, and no times of numpy": [
        "generated/types_float.*.h5",
        "jhdf/opaque_datasets_earliest.hdf5",
        "libhdf5/h5diff/h5diff_basic1.h5",
        "libhdf5/tools/tldouble*.h5",
    ],
    "HSDS makes a scalar of a null dataspace": [
        "generated/headers.*.h5",
        "generated/spaces.earliest.h5",
        "jhdf/test_odd_datasets_*.hdf5",
        "jhdf/test_scalar_empty_datasets_latest.hdf5",
        "libhdf5/hl/test_ld.h5",
        "libhdf5/tools/tnullspace.h5",
    ],
    "HSDS takes a maximum of 0 for no limit": ["realworld/hdf5storage_mat_python.h5"],
    "h5pyd does not take types with references of h5py, other than of objects": [
        "generated/references.v110.h5",
        "generated/references_std.v112.h5",
        "libhdf5/test/bounds_ref_*.h5",
    ],
    "hsload makes strings of attributes that are one reference": [
        "generated/userblock.v110.h5",
        "jhdf/test_attribute_earliest.hdf5",
        "libhdf5/gif2h5/h52giftst.h5",
        "realworld/nwb_timeseries.nwb",
    ],
    "hsload leaves out fill values that are references or sequences": [
        "hdf5-pure/mat_real/*.mat",
        "realworld/netcdf4_types.nc",
    ],
    "hsload cannot describe strings of variable length in compounds": [
        "generated/sizes.*.h5",
        "libhdf5/h5diff/h5diff_comp_vl_strs.h5",
    ],
    "hsload asks whether the array of a fill value is true, which numpy refuses": [
        "generated/types_array_vlen.*.h5",
        "libhdf5/tools/tscalarintsize.h5",
        "libhdf5/tools/tvlenstr_array.h5",
    ],
    "h5json has no arrays of opaque types, enumerations or sequences": ["generated/types_compound_vlen.v110.h5"],
    "h5json does not read variable-length members beside arrays, in arrays, or alone in a compound": [
        "jhdf/compound_datasets_*.hdf5",
    ],
    "hsload compares sequences of compounds with a number": [
        "libhdf5/h5diff/compounds_array_vlen*.h5",
        "libhdf5/tools/tvldtypes4.h5",
    ],
    "hsload takes sequences for an array, and cannot reshape it": [
        "libhdf5/h5copy/h5copytst_new.h5",
        "libhdf5/tools/tempty.h5",
    ],
    "hsload leaves out hard links to the root group": ["libhdf5/tools/thlink.h5"],
}

"""Maps as mappings."""

import h5live


def test_a_map_is_a_mapping_in_the_order_of_its_keys(tmp_path):
    with h5live.File(tmp_path / "maps.h5", "w", libver="latest") as file:
        ages = file.create_map("ages", h5live.string_dtype(), "i4")
        ages["Grace"] = 85
        ages.put_many({"Ada": 36, "Edsger": 72})
        assert dict(ages.items()) == {"Ada": 36, "Edsger": 72, "Grace": 85}
        assert ages["Ada"] == 36 and len(ages) == 3 and "Kurt" not in ages
        assert [key for key, _ in ages.range("B", "F")] == ["Edsger"]
        del ages["Grace"]
        assert list(ages) == ["Ada", "Edsger"]
